\set number random(1, 1000000 * :scale)
SELECT * FROM numbers WHERE number = :number;
