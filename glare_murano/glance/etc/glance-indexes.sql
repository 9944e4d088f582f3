CREATE INDEX murano_images ON images (container_format, name);
