ALTER TABLE glare_artifacts
    MODIFY name VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin NOT NULL,
    MODIFY version_suffix VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin,
    MODIFY version_meta VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin,
    MODIFY owner VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin;
ALTER TABLE glare_artifact_locks
    MODIFY id VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin NOT NULL;
ALTER TABLE glare_artifact_properties
    MODIFY string_value VARCHAR(20000) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin,
    MODIFY key_name VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin;
ALTER TABLE glare_artifact_tags
    MODIFY value VARCHAR(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin NOT NULL;
CREATE INDEX IF NOT EXISTS ix_murano_classes
    ON glare_artifact_properties (name, string_value(255));
CREATE INDEX IF NOT EXISTS ix_murano_keys ON glare_artifact_properties (name, key_name);
