-- An insert.
\set seed random(1, 2000000000)
INSERT INTO usertable VALUES ('user' || nextval('usertable_number'),
    ycsb_value(:seed + 0), ycsb_value(:seed + 4), ycsb_value(:seed + 8),
    ycsb_value(:seed + 12), ycsb_value(:seed + 16), ycsb_value(:seed + 20),
    ycsb_value(:seed + 24), ycsb_value(:seed + 28), ycsb_value(:seed + 32),
    ycsb_value(:seed + 36));
