\setrandom userid 1 20000000
SELECT f_user_login(:userid);
