\set number random(1, 1000000 * :scale)
\set operator random(1, 100)
\set region random(1, 100)
UPDATE numbers SET region = :region, operator = :operator WHERE number = :number;
