"""All fuzzers: a function of a random generator and a folder, which raises where something is wrong."""

from tests.fuzz import damaged_files, hostile_texts, odd_inputs, pages, relations, tabular_files

FUZZERS = {
    "order of rows": relations.order_of_rows,
    "unit of weights": relations.unit_of_weights,
    "unit of outcomes": relations.unit_of_outcomes,
    "table for rows": relations.table_for_rows,
    "sum of tables": relations.sum_of_tables,
    "changed arrays": relations.changed_arrays,
    "alignment": odd_inputs.alignment,
    "groups apart": odd_inputs.groups_apart,
    "no order": odd_inputs.no_order,
    "read-only": odd_inputs.read_only,
    "writers": odd_inputs.writers,
    "map files": damaged_files.map_files,
    "table files": damaged_files.table_files,
    "tabular files": tabular_files.tabular,
    "hostile texts": hostile_texts.hostile_texts,
    "rows of text": tabular_files.rows_of_text,
    "rows of tables": tabular_files.rows_of_tables,
    "pages": pages.pages,
    "any pages": pages.any_pages,
    "strange pages": pages.strange_pages,
}
