CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  table_name TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX records_by_table ON records (table_name, id);
