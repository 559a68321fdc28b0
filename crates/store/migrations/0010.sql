-- The store, version 10. What each command did in each second. Trials from before have nothing of it.

CREATE TABLE second_command (
    trial INTEGER NOT NULL REFERENCES trial (id),
    t_s   INTEGER NOT NULL,                       -- as in second
    done  TEXT NOT NULL,                          -- JSON: [count, nanoseconds] of each command, as the measurement's scripts have them
    PRIMARY KEY (trial, t_s)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER second_command_no_update BEFORE UPDATE ON second_command BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
CREATE TRIGGER second_command_no_delete BEFORE DELETE ON second_command BEGIN SELECT RAISE(ABORT, 'the store is append-only'); END;
