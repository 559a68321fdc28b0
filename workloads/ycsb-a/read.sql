-- A read. Popular rows are strewn over the table, as by YCSB's scrambled zipfian.
\set records 100000 * :scale
\set number 1 + permute(random_zipfian(1, :records, :skew) - 1, :records)
SELECT * FROM usertable WHERE ycsb_key = 'user' || :number;
