-- A scan of 1 to 100 rows.
\set records 100000 * :scale
\set number 1 + permute(random_zipfian(1, :records, :skew) - 1, :records)
\set length random(1, 100)
SELECT * FROM usertable WHERE ycsb_key >= 'user' || :number ORDER BY ycsb_key LIMIT :length;
