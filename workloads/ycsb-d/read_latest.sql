-- A read, the more likely the newer the row.
\set records 100000 * :scale
\set age random_zipfian(1, :records, :skew) - 1
SELECT * FROM usertable
WHERE ycsb_key = 'user' || (SELECT last_value - :age FROM usertable_number);
