-- An update of one of the ten fields.
\set records 100000 * :scale
\set number 1 + permute(random_zipfian(1, :records, :skew) - 1, :records)
\set field random(0, 9)
\set seed random(1, 2000000000)
\if :field = 0
UPDATE usertable SET field0 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 1
UPDATE usertable SET field1 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 2
UPDATE usertable SET field2 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 3
UPDATE usertable SET field3 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 4
UPDATE usertable SET field4 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 5
UPDATE usertable SET field5 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 6
UPDATE usertable SET field6 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 7
UPDATE usertable SET field7 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 8
UPDATE usertable SET field8 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\elif :field = 9
UPDATE usertable SET field9 = ycsb_value(:seed) WHERE ycsb_key = 'user' || :number;
\endif
