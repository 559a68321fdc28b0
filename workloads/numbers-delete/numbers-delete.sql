\set number random(1, 1000000 * :scale)
DELETE FROM numbers WHERE number = :number;
