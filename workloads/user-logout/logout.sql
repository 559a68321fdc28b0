\set userid random(1, 100000 * :scale)
SELECT f_user_logout(:userid);
