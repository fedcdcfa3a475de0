// SPDX-License-Identifier: Apache-2.0
// triax plugins new: writes the folder of a new plugin, as a copy of a template.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/printable_line.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "config/plugin_tables.hpp"
#include "plugin/loader.hpp"
#include "plugin/plugin_kinds.hpp"
#include "plugins/plugin_template.hpp"
#include "plugins/plugins_verbs.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

struct NewArguments {
  std::string kind, name, folder; // folder: --dir
  bool cuda = false, csv = false;
};

constexpr std::size_t kMaxName = 64; // the names of files that the build makes from it must be below 256 characters

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The nearest name that has letters, digits and single dashes only.
std::string without_other_characters(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (is_letter_or_digit(c)) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

/// A name is that of a file and a CMake target and, with underscores, of a C++ namespace.
void check_name(const NewArguments& arguments) {
  const std::string prefix(config::plugin_prefix(arguments.kind));
  const std::string where = text("\"{}\"", arguments.name);
  std::string plain = without_other_characters(arguments.name);
  if (plain == prefix.substr(0, prefix.size() - 1)) plain.clear();
  const bool has_prefix = plain.starts_with(prefix);
  const std::string better = has_prefix ? plain : prefix + (plain.empty() ? "mine" : plain);
  if (arguments.name.size() > kMaxName)
    throw Error(text("a name has at most {} characters, got {}", kMaxName, arguments.name.size()), {},
                text("use a name such as {}mine", prefix));
  if (better == arguments.name && better != template_name(prefix)) return;
  if (better == arguments.name) throw Error("is the name of the template", where, text("use {}mine", prefix));
  if (plain != arguments.name)
    throw Error("a name has letters, digits and single dashes between them", where, text("use {}", better));
  throw Error(text("the names of plugins of the kind {} begin with {}", arguments.kind, prefix), where,
              text("use {}", better));
}

void check_unused(const std::string& name) {
  const std::string where = text("\"{}\"", name);
  for (const plugin::SearchFolder& folder : plugin::search_folders({}))
    for (const fs::path& file : plugin::candidates(folder.folder))
      if (file.stem() == name) throw Error(text("there is a plugin of this name: {}", file), where, "use another name");
  if (config::is_engine_plugin(name))
    throw Error("this is the name of a plugin of Triax, which was left out of this build", where, "use another name");
}

/// The folder to write. Throws Error if it exists.
fs::path destination(const NewArguments& arguments) {
  fs::path out = fs::path(arguments.folder.empty() ? arguments.name : arguments.folder).lexically_normal();
  if (!out.has_filename()) out = out.parent_path(); // "folder/"
  std::error_code unknown;
  if (fs::symlink_status(out, unknown).type() != fs::file_type::not_found)
    throw Error("already exists; no file was written", out.string(), "choose another folder with --dir");
  return out;
}

/// The name of the template's folder.
std::string variant(const NewArguments& arguments) {
  if (arguments.csv && arguments.kind != "scheduler")
    throw Error(text("a plugin of the kind {} cannot be written as CSV", arguments.kind), "--csv",
                "use it with the kind scheduler");
  if (arguments.cuda && arguments.kind == "communicator")
    throw Error("the template of a communicator moves GPU memory without CUDA code, through pinned buffers", "--cuda",
                "leave --cuda out; plugins/comm-nccl of the source tree works on GPU memory itself");
  if (arguments.cuda && arguments.kind != "kernels")
    throw Error(
        text("a plugin of the kind {} has no CUDA code: it uses the operations of a kernel set", arguments.kind),
        "--cuda", "use it with the kind kernels");
  return arguments.kind + (arguments.csv ? "-csv" : arguments.cuda ? "-cuda" : "");
}

/// The command that installs the build of this program; empty if its folder was not built, such as that of a copy.
std::string install_command() {
  const fs::path tree = plugin::core_folder().parent_path();
  std::error_code unknown;
  return fs::exists(tree / "cmake_install.cmake", unknown) ? text("cmake --install {} --prefix PREFIX", tree) : "";
}

/// The folder that Triax is installed in; empty for a build folder, whose CMake package cannot be used.
std::string installed_prefix() {
  const fs::path prefix = plugin::core_folder().parent_path();
  std::error_code unknown;
  return fs::exists(prefix / "lib" / "cmake" / "triax" / "triaxConfig.cmake", unknown) ? prefix.string() : "";
}

void print_new(const NewArguments& arguments, const fs::path& folder, const std::vector<fs::path>& files) {
  std::string listed;
  for (const fs::path& file : files) listed += " " + file.string();
  const std::string prefix = installed_prefix(), at = folder.string(), build = (folder / "build").string();
  std::ostream& out = result_out();
  out << printable_line(text("{}: wrote {}:{}", arguments.name, at, listed)) << "\n\n";
  if (prefix.empty()) {
    out << "This triax is not installed: install it first. PREFIX is the absolute path of a folder for it.\n\n";
    if (const std::string install = install_command(); !install.empty()) out << printable_line(install) << '\n';
  }
  out << printable_line(text("cmake -S {} -B {} -DCMAKE_PREFIX_PATH={}", at, build, prefix.empty() ? "PREFIX" : prefix))
      << '\n';
  if (!arguments.csv) out << printable_line(text("cmake --build {}", build)) << '\n';
  out << printable_line(text("ctest --test-dir {}", build)) << "\n\n"
      << printable_line(text("{} has the next steps.", (folder / "README.md").string())) << '\n';
}

int create(const NewArguments& arguments) {
  fs::path folder, source;
  try {
    source = templates_folder() / variant(arguments);
    check_name(arguments);
    check_unused(arguments.name);
    folder = destination(arguments);
  } catch (const Error& error) {
    print_problem(error.what());
    return kRefused;
  }
  const std::string old_name = template_name(config::plugin_prefix(arguments.kind));
  print_new(arguments, folder, copy_template(source, old_name, arguments.name, folder));
  return kDone;
}

} // namespace

void add_plugins_new(CLI::App& plugins, int& status) {
  const auto arguments = std::make_shared<NewArguments>();
  CLI::App* const verb = plugins.add_subcommand(
      "new", "writes the folder of a new plugin, which builds, loads and passes its test: change it into yours");
  std::vector<std::string> kinds;
  for (const plugin::PluginKind& kind : plugin::plugin_kinds()) kinds.emplace_back(kind.name);
  verb->add_option("KIND", arguments->kind, plugin::plugin_kind_names())
      ->check(one_of(kinds))
      ->type_name("KIND")
      ->required();
  verb->add_option("NAME", arguments->name, "its name: letters, digits and dashes, after the prefix of its kind")
      ->required();
  verb->add_option("--dir", arguments->folder, "the folder to write, which must not exist [NAME]")->type_name("DIR");
  CLI::Option* const cuda = verb->add_flag("--cuda", arguments->cuda, "kernels: for NVIDIA GPUs, with a .cu file");
  verb->add_flag("--csv", arguments->csv, "scheduler: as a CSV file, which sched-file runs; nothing is compiled")
      ->excludes(cuda);
  verb->callback([arguments, &status] { status = create(*arguments); });
}

} // namespace triax::app
