CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  record TEXT NOT NULL
);
CREATE INDEX records_by_text ON records (record);
