-- PostgreSQL cannot index long strings; names of classes are short.
CREATE INDEX IF NOT EXISTS ix_murano_classes ON glare_artifact_properties (string_value)
    WHERE name = 'class_definitions';
CREATE INDEX IF NOT EXISTS ix_murano_keys ON glare_artifact_properties (name, key_name);
