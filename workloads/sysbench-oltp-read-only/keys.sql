CREATE INDEX k_1 ON sbtest1 (k);
