{#- The recalibrated probability of a score.
    map: name of a map in the variable calibrant_maps, where its SQL reads the column calibrant_score.
    score: a column or an SQL expression; it is written many times, so put what is expensive into a CTE. -#}
{%- macro calibrant(map, score) -%}
  {%- set maps = var('calibrant_maps', {}) -%}
  {%- if map not in maps -%}
    {{ exceptions.raise_compiler_error("The variable calibrant_maps has no map '" ~ map ~ "'; it has: " ~ (maps | join(', ') or 'none') ~ ".") }}
  {%- endif -%}
  {%- set sql = maps[map] | trim -%}
  {%- if '"calibrant_score"' not in sql and '`calibrant_score`' not in sql -%}
    {{ exceptions.raise_compiler_error("The SQL of the map '" ~ map ~ "' does not read calibrant_score; write it with --prob calibrant_score.") }}
  {%- endif -%}
  {%- set given = '(' ~ score ~ ')' -%}
  ({{ sql | replace('"calibrant_score"', given) | replace('`calibrant_score`', given) }})
{%- endmacro -%}
