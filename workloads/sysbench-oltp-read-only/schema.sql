-- The table of sysbench's OLTP tests.
CREATE TABLE sbtest1 (id int NOT NULL, k int NOT NULL DEFAULT 0, c char(120) NOT NULL DEFAULT '',
    pad char(60) NOT NULL DEFAULT '');
