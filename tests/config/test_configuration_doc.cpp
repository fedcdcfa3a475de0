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

Generated from the tables of keys of the engine and its plugins (`UPDATE_GOLDEN=1 ctest -R ConfigurationDoc`); do not
edit. A run is one TOML file. `triax check RUN.toml` prints every value with where it came from, and refuses whatever
does not fit, with file, line and column, all at once. `triax plugins describe NAME` prints a plugin's keys.

- **Plugins.** `plugin` in [model], [schedule], [comm], [kernels] and [optimizer] names the plugin, and there is no
  default. The other keys of such a table are the plugin's, but for the few of the core listed here.
- **Layers.** `include = ["base.toml"]` above the first table reads other files first; the file's own values win over
  them, and `--set table.key=value` wins over all. When a later layer names another plugin in a table, the keys of the
  former plugin are dropped, and `check` lists them.
- **Axes.** [comm.tensor], [comm.pipeline] and [comm.data] speak of one axis. Without `plugin` such a table takes all of
  [comm] and changes single keys; with it, it starts from that plugin's defaults.
- **Paths** in a file are relative to that file; in a flag, or in a TOML from a pipe, to the working folder. Default
  files of a run, `runs/...`, are in the working folder.
- **Pipes.** RUN.toml may be standard input or a pipe: `/dev/stdin`, a FIFO, or `<(...)` of a shell. `train` with ranks as
  processes needs a file, which each rank reads.
- **Values.** An integer is also accepted where a number is expected. `--set` needs no quotes around strings. Lists are
  written as in TOML, in quotes that the shell removes: `--set 'data.paths=["a", "b"]'`.
- **Limits.** A TOML file has at most 8 MiB and 32 levels of nesting. Includes are at most 100 files deep.
)";

struct Row {
  const triax_option* option;
  const char* derived = nullptr;
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

std::string allowed_text(const triax_option& option) {
  std::string limits = plugin::limits_text(option);
  for (std::size_t bar = limits.find('|'); bar != std::string::npos; bar = limits.find('|'))
    limits.replace(bar, 1, ", ");
  const std::string type = plugin::type_name(option.type);
  return limits.empty() ? type : type + ": " + limits;
}

void write_rows(std::ostream& out, const std::vector<Row>& rows) {
  out << "\n| key | default | allowed | meaning |\n|---|---|---|---|\n";
  for (const Row& row : rows) {
    out << text("| {} | {} | {} | {} |\n", code(row.option->name), default_text(row), allowed_text(*row.option),
                row.option->doc);
  }
}

void write_table(std::ostream& out, const CoreTable& table) {
  out << text("\n## [{}]\n\n{}.", table.name, sentence(table.doc));
  if (table.inherits) out << " The keys are [comm]'s.";
  if (table.kind && !table.inherits) {
    out << text(" `plugin` (required): the name of a plugin of kind {}, whose own keys stand here too.", table.kind);
  }
  out << '\n';
  std::vector<Row> rows;
  for (const CoreKey& key : table.keys) rows.push_back({&key.option, key.derived});
  if (!rows.empty()) write_rows(out, rows);
}

void write_plugin(std::ostream& out, const plugin::Library& library) {
  out << text("\n## {}\n\nKind {}: {}.", library.descriptor->name, library.descriptor->kind,
              library.descriptor->description);
  if (library.options.empty()) out << " No keys of its own.";
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
