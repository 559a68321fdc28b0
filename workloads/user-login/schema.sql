CREATE TABLE user_info (userid int NOT NULL, engname text, cnname text, occupation text, birthday date, signname text,
    email text, qq numeric, crt_time timestamp, mod_time timestamp);
CREATE TABLE user_session (userid int NOT NULL, logintime timestamp(0), login_count bigint DEFAULT 0,
    logouttime timestamp(0), online_interval interval DEFAULT interval '0');
CREATE TABLE user_login_rec (userid int, login_time timestamp, ip inet);
CREATE TABLE user_logout_rec (userid int, logout_time timestamp, ip inet);

CREATE OR REPLACE FUNCTION f_user_login(i_userid int, OUT o_userid int, OUT o_engname text, OUT o_cnname text,
    OUT o_occupation text, OUT o_birthday date, OUT o_signname text, OUT o_email text, OUT o_qq numeric)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT userid, engname, cnname, occupation, birthday, signname, email, qq
        INTO o_userid, o_engname, o_cnname, o_occupation, o_birthday, o_signname, o_email, o_qq
        FROM user_info WHERE userid = i_userid;
    INSERT INTO user_login_rec (userid, login_time, ip) VALUES (i_userid, now(), inet_client_addr());
    UPDATE user_session SET logintime = now(), login_count = login_count + 1 WHERE userid = i_userid;
END;
$$;

CREATE OR REPLACE FUNCTION f_user_logout(i_userid int, OUT o_result int)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO user_logout_rec (userid, logout_time, ip) VALUES (i_userid, now(), inet_client_addr());
    UPDATE user_session SET logouttime = now(), online_interval = online_interval + (now() - logintime)
        WHERE userid = i_userid;
    o_result := 0;
EXCEPTION WHEN OTHERS THEN
    o_result := 1;
END;
$$;
