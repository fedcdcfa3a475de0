// SPDX-License-Identifier: Apache-2.0
// docs/configuration.md matches the tables of keys; UPDATE_GOLDEN=1 rewrites it.
#include <cctype>
#include <sstream>

#include "config/core_keys.hpp"
#include "plugin/loader.hpp"
#include "plugin/option_text.hpp"
#include "support/golden.hpp"
#include "triax/text.hpp"

namespace triax::config {
namespace {

const char* const kIntroduction = R"(# Configuration

A run is one TOML file. `triax check RUN.toml` prints every value with its origin, and reports the errors together, with
file, line and column. `triax plugins describe NAME` prints the keys of a plugin.

This page is generated from the key tables of the engine and its plugins (`UPDATE_GOLDEN=1 ctest -R ConfigurationDoc`).
Do not edit it.

- **Plugins.** `plugin` in [model], [schedule], [comm], [kernels] and [optimizer] names the plugin; there is no default.
  The other keys of such a table belong to the plugin, except for the core's keys that this page lists for the table.
- **Includes.** `include = ["base.toml"]` above the first table reads other files first. The file's own values override
  theirs, and the values of all `--set table.key=value` override both. If a later file or flag names another plugin in
  a table, the keys of the earlier plugin are dropped, and `check` lists them.
- **Axes.** [comm.tensor], [comm.pipeline] and [comm.data] each apply to one axis. Without `plugin`, such a table
  inherits [comm] and changes single keys. With `plugin`, it starts from the defaults of that plugin.
- **Paths** in a file are relative to the file. Paths in a flag, or in a TOML file that is read from a pipe, are
  relative to the working folder. By default, the files of a run are in `runs/` in the working folder.
- **Pipes.** RUN.toml can be standard input or a pipe: `/dev/stdin`, a FIFO, or `<(...)` of a shell. `train` with ranks
  as processes needs a file, because each rank reads it.
- **Values.** An integer is accepted where a number is expected. `--set` needs no quotes around strings. Write lists as
  in TOML, quoted for the shell: `--set 'data.paths=["a", "b"]'`.
- **Limits.** A TOML file has at most 8 MiB and 32 levels of nesting. Includes are at most 100 files deep.
)";

struct Row {
  const triax_option* option;
  const char* derived = nullptr;
  bool per_stage = false;
  const char* word = nullptr;
};

std::string code(std::string_view text) {
  return "`" + std::string(text) + "`";
}

std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string default_text(const Row& row) {
  if (row.derived) return row.derived;
  if (!row.option->default_value) return "required";
  return code(plugin::to_toml(plugin::parse_option(*row.option, row.option->default_value)));
}

std::string allowed_text(const Row& row) {
  std::string limits = plugin::limits_text(*row.option);
  for (std::size_t bar = limits.find('|'); bar != std::string::npos; bar = limits.find('|'))
    limits.replace(bar, 1, ", ");
  const std::string type = plugin::type_name(row.option->type);
  const std::string of_one = limits.empty() ? type : type + ": " + limits;
  if (row.per_stage) return of_one + "; or a list with one for each stage";
  return row.word ? text("{}; or \"{}\"", of_one, row.word) : of_one;
}

void write_rows(std::ostream& out, const std::vector<Row>& rows) {
  out << "\n| key | default | allowed | meaning |\n|---|---|---|---|\n";
  for (const Row& row : rows) {
    out << text("| {} | {} | {} | {} |\n", code(row.option->name), default_text(row), allowed_text(row),
                row.option->doc);
  }
}

void write_table(std::ostream& out, const CoreTable& table) {
  out << text("\n## [{}]\n\n{}.", table.name, sentence(table.doc));
  if (table.inherits) out << " This table has the keys of [comm].";
  if (table.kind && !table.inherits) {
    out << text(" `plugin` (required): the name of a plugin of kind {}; its keys belong to this table too.",
                table.kind);
  }
  out << '\n';
  std::vector<Row> rows;
  for (const CoreKey& key : table.keys) rows.push_back({&key.option, key.derived, key.per_stage, key.word});
  if (!rows.empty()) write_rows(out, rows);
}

void write_plugin(std::ostream& out, const plugin::Library& library) {
  out << text("\n## {}\n\nKind {}: {}.", library.descriptor->name, library.descriptor->kind,
              library.descriptor->description);
  if (library.options.empty()) out << " The plugin has no keys.";
  out << '\n';
  std::vector<Row> rows;
  for (const triax_option& option : library.options) rows.push_back({&option});
  if (!rows.empty()) write_rows(out, rows);
}

/// The page's section of a plugin that is not built here.
std::string section_of(const std::string& page, const std::string& name) {
  const std::string heading = text("\n## {}\n", name);
  const std::size_t begin = page.find(heading);
  if (begin == std::string::npos) return text("\n(nothing is said of {})\n", name);
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

TEST(ConfigurationDoc, IsCurrent) {
  std::ostringstream out;
  out << kIntroduction;
  for (const CoreTable& table : core_tables()) write_table(out, table);
  out << "\n# Plugins\n";
  std::istringstream names(TRIAX_PLUGIN_NAMES);
  const std::filesystem::path page = TRIAX_SOURCE_DIR "/docs/configuration.md";
  const std::filesystem::path folder = TRIAX_BINARY_DIR "/lib/triax/plugins";
  for (std::string name; std::getline(names, name, ' ');) {
    if (std::string(TRIAX_BUILT_PLUGINS).find(" " + name + " ") == std::string::npos) {
      out << section_of(test::read_file(page), name);
    } else {
      write_plugin(out, plugin::load(folder / (name + ".so"), ""));
    }
  }
  test::expect_golden(page, out.str());
}

} // namespace
} // namespace triax::config
