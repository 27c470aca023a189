-- Tables, indices, joins, windows, JSON, recursion, a trigger, deletion and compaction over :rows rows.
pragma journal_mode = off;
pragma cache_size = 500;
create table item (id integer primary key, name text, weight real, data blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < :rows)
insert into item select i, 'name' || (i * 7919 % 10007), (i * 31 % 1009) / 8.0, zeroblob(i % 400) from n;
create index by_name on item (name, weight);
create table history (id integer, was text);
create trigger kept after update of name on item begin insert into history values (old.id, old.name); end;
update item set name = upper(name) || id where id % 13 = 0;
delete from item where id % 7 = 3;
vacuum;
pragma integrity_check;
select count(*), sum(id), sum(length(data)), round(sum(weight), 3) from item;
select count(*), group_concat(was, '') from (select was from history order by id limit 2000);
select a.name, count(*), round(avg(b.weight), 4) from item a join item b on a.name = b.name group by a.name
  order by 2 desc, 1 limit 300;
select id, round(sum(weight) over (partition by id % 17 order by id rows 5 preceding), 4), rank() over (order by weight, id)
  from item order by id limit 2000;
select sum(json_extract(row, '$.n[2]')), sum(length(row)) from
  (select json_object('id', id, 'n', json_array(id, id + 1, id + 2), 'name', name) as row from item);
select name from item where name glob '*77*' order by name collate nocase, id limit 500;
with recursive fib(a, b, n) as (select 0, 1, 0 union all select b, (a + b) % 1000000007, n + 1 from fib where n < :rows)
select max(a), sum(a) from fib;
