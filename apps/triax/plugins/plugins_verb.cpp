// SPDX-License-Identifier: Apache-2.0
// triax plugins list | describe | test | doctor | new: lists plugins and describes one; the others have
// separate files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "plugin/describe.hpp"
#include "plugin/loader.hpp"
#include "plugin/option_text.hpp"
#include "plugins/locate_plugin.hpp"
#include "plugins/plugins_verbs.hpp"
#include "triax/error.hpp"
#include "triax/toolchain.h"
#include "triax/version.h"

namespace triax::app {

namespace {

struct PluginsArguments {
  std::vector<std::string> folders; // --path
  std::string plugin;
  bool json = false;
};

/// Prints what is wrong with TRIAX_PLUGIN_PATH.
bool environment_refused(const PluginsArguments& arguments) {
  const Refusals answer = plugin::check_environment();
  if (!answer.empty()) refuse(answer, arguments.json);
  return !answer.empty();
}

std::string joined(const std::vector<std::filesystem::path>& files) {
  std::string out;
  for (const std::filesystem::path& file : files) out += (out.empty() ? "" : ", ") + file.string();
  return out;
}

int list(const PluginsArguments& arguments) {
  if (environment_refused(arguments)) return kRefused;
  const auto rows = plugin::list(folders_to_search(arguments.folders));
  if (arguments.json) {
    result_out() << plugin::to_json(rows) << '\n';
    return kDone;
  }
  std::vector<std::vector<std::string>> cells = {{"name", "kind", "version", "description", "where"}};
  for (const auto& row : rows) {
    std::string where = row.file.parent_path().string();
    if (!row.shadowed_by.empty()) where += " (shadowed by " + row.shadowed_by.string() + ")";
    if (!row.shadows.empty()) where += " (shadows " + joined(row.shadows) + ")";
    if (row.problem.empty()) {
      cells.push_back({row.name, row.kind, row.version, row.description, where});
    } else {
      cells.push_back({row.name, "broken", "", row.problem, where});
    }
  }
  result_out() << table(cells);
  return kDone;
}

void print_options(const plugin::Library& library) {
  if (library.options.empty()) {
    result_out() << "options      none\n";
    return;
  }
  result_out() << "\noptions\n";
  std::vector<std::vector<std::string>> cells = {{"key", "default", "type", "allowed", "meaning"}};
  for (const auto& option : library.options) {
    const std::string value =
        option.default_value ? plugin::to_toml(plugin::parse_option(option, option.default_value)) : "(required)";
    cells.push_back({option.name, value, plugin::type_name(option.type), plugin::limits_text(option), option.doc});
  }
  result_out() << table(cells);
}

void print(const plugin::Description& description) {
  if (description.library) {
    const triax_plugin& plugin = *description.library->descriptor;
    result_out() << printable_line(text("{}: {}", plugin.name, plugin.description)) << '\n';
    result_out() << "kind         " << plugin.kind << ", interface version " << plugin.interface_version << '\n'
                 << "version      " << printable_line(plugin.version) << '\n';
  }
  result_out() << "file         " << printable_line(description.file.string()) << '\n';
  if (!description.shadows.empty())
    result_out() << "shadows      " << printable_line(joined(description.shadows)) << '\n';
  result_out() << "note         " << (description.note.text.empty() ? "none" : printable_line(description.note.text))
               << '\n';
  if (description.library) {
    const triax_plugin& plugin = *description.library->descriptor;
    result_out() << "toolchain    " << printable_line(plugin.toolchain) << '\n'
                 << "plugin ABI   " << plugin.abi_major << '.' << plugin.abi_minor << '\n';
  }
  result_out() << "this triax   " TRIAX_VERSION "; plugin ABI " << TRIAX_ABI_MAJOR << '.' << TRIAX_ABI_MINOR
               << "; " TRIAX_TOOLCHAIN "\n";
  if (description.library) {
    print_options(*description.library);
    return;
  }
  result_out() << "needs       ";
  for (const auto& library : description.needed) result_out() << ' ' << printable_line(library);
  result_out() << '\n';
}

/// The problem of a file that is not a library, in parts.
Error error_of(const plugin::Description& description) {
  const std::string file = description.file.string(), &problem = description.problem;
  const std::size_t begin = problem.starts_with(file + ": ") ? file.size() + 2 : 0;
  const std::size_t end = std::min(problem.find("\n  "), problem.size());
  return Error(problem.substr(begin, end - begin), begin == 0 ? "" : file,
               end == problem.size() ? "" : problem.substr(end + 3));
}

int describe(const PluginsArguments& arguments) {
  if (environment_refused(arguments)) return kRefused;
  plugin::Found found;
  try {
    found = locate_plugin(arguments.plugin, arguments.folders);
  } catch (const Error& error) {
    const bool is_path = !error.where().empty();
    return refuse(is_path ? config::code_of_unreadable(error.where()) : ErrorCode::kUnknownPlugin, error, "plugin",
                  arguments.json);
  }
  auto description = plugin::describe(found.file);
  if (!description.is_library) { // there is nothing to describe
    return refuse(config::code_of_unreadable(found.file), error_of(description), "plugin", arguments.json);
  }
  description.shadows = std::move(found.shadowed);
  if (arguments.json) {
    result_out() << plugin::to_json(description) << '\n';
  } else {
    print(description);
  }
  if (description.problem.empty()) return kDone;
  result_out().flush();
  print_problem(description.problem);
  return kFailed;
}

} // namespace

void add_plugins(CLI::App& program, int& status) {
  const auto arguments = std::make_shared<PluginsArguments>();
  CLI::App* const plugins =
      program.add_subcommand("plugins", "lists, describes, examines and tests plugins, and begins new ones");
  plugins->require_subcommand(1);
  const auto common = [&arguments](CLI::App* verb) {
    repeated(verb->add_option("--path", arguments->folders, "folder to search first")
                 ->check(existing_folder())
                 ->expected(1));
    verb->add_flag("--json", arguments->json, "prints one JSON object");
  };

  CLI::App* const list_verb =
      plugins->add_subcommand("list", "lists every plugin that is found, even if it does not load");
  common(list_verb);
  list_verb->callback([arguments, &status] { status = list(*arguments); });

  CLI::App* const describe_verb =
      plugins->add_subcommand("describe", "describes one plugin: versions, toolchain, options");
  describe_verb->add_option("plugin", arguments->plugin, "its name, or the path of its file")->required();
  common(describe_verb);
  describe_verb->callback([arguments, &status] { status = describe(*arguments); });

  add_plugins_test(*plugins, status);
  add_plugins_doctor(*plugins, status);
  add_plugins_new(*plugins, status);
}

} // namespace triax::app
