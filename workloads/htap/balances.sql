\set bid random(1, :scale)
SELECT sum(abalance), min(abalance), max(abalance) FROM pgbench_accounts WHERE bid = :bid;
