// SPDX-License-Identifier: Apache-2.0
// Searches folders for plugins. Reads only file names; loads nothing.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "plugin/did_you_mean.hpp"
#include "plugin/loader.hpp"
#include "plugin/plugin_kinds.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "TRIAX_PLUGIN_PATH";

bool is_folder(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

std::string described(const SearchFolder& searched) {
  std::string note = searched.origin;
  if (!is_folder(searched.folder)) note += (note.empty() ? "" : "; ") + std::string("no such folder");
  return shortened(searched.folder.string()) + (note.empty() ? "" : " (" + note + ")");
}

/// The first folders and the last, which is that of Triax.
std::string listed_folders(const std::vector<std::string>& folders) {
  constexpr std::size_t kMaxListed = 8;
  std::string out;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const bool is_shown = folders.size() <= kMaxListed || i + 1 < kMaxListed || i + 1 == folders.size();
    if (is_shown) out += (out.empty() ? "" : ", ") + folders[i];
    if (!is_shown && i + 2 == folders.size()) out += text(", {} more", folders.size() - kMaxListed);
  }
  return out;
}

/// The kind whose prefix a name has; empty: none.
std::string_view kind_of(std::string_view name) {
  for (const PluginKind& kind : plugin_kinds())
    if (name.starts_with(kind.prefix)) return kind.name;
  return {};
}

const PluginKind& kind_named(std::string_view name) {
  return *std::ranges::find(plugin_kinds(), name, &PluginKind::name);
}

std::vector<fs::path> folders_of_environment() {
  std::vector<fs::path> out;
  const char* const variable = std::getenv(kVariable);
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (!part.empty()) out.emplace_back(part);
  }
  return out;
}

/// Whether the folder has an entry of that name. Dangling symlinks, folders and unreadable files count, because the
/// user intended to use them. Throws Error for a folder that cannot be searched.
bool has_entry(const SearchFolder& searched, const fs::path& file) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(file, failed);
  if (status.type() == fs::file_type::not_found) return false;
  if (failed == std::errc::filename_too_long) return false; // the folder cannot exist: check_environment() reports it
  if (!failed || status.type() != fs::file_type::none) return true;
  throw Error(text("plugin \"{}\" cannot be searched for in {}: {}", file.stem().string(), described(searched),
                   failed.message()),
              {}, "make the folder readable, or remove it from the search path");
}

} // namespace

/// Uses the address of the null log, an object in the library. The address of a function could be in the program's jump
/// table.
fs::path core_folder() {
  Dl_info info;
  if (dladdr(&null_log(), &info) == 0 || !info.dli_fname) {
    throw Error("cannot find the path of libtriax_core.so");
  }
  return fs::canonical(info.dli_fname).parent_path();
}

Refusals check_environment() {
  for (const fs::path& folder : folders_of_environment()) {
    if (!is_folder(folder))
      return make_refusal(ErrorCode::kNotFound, {}, "{} names {}, which is not a folder", kVariable,
                          shortened(folder.string()))
          .with_hint("create it, or remove it from the variable");
  }
  return {};
}

std::vector<SearchFolder> search_folders(const std::vector<SearchFolder>& from_config) {
  std::vector<SearchFolder> folders = from_config;
  for (fs::path& folder : folders_of_environment()) folders.push_back({std::move(folder), kVariable});
  folders.push_back({core_folder() / "triax" / "plugins", ""});
  return folders;
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code unreadable;
  return a.lexically_normal() == b.lexically_normal() || fs::equivalent(a, b, unreadable);
}

std::vector<fs::path> candidates(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<Found> try_find(std::string_view name, const std::vector<SearchFolder>& folders) {
  if (name.empty() || is_path(name)) {
    throw Error(text("plugin \"{}\" is not a valid name", name), {},
                "write only the name, such as sched-gpipe; folders to search belong in plugins.path");
  }
  Found found;
  for (const SearchFolder& searched : folders) {
    fs::path file = searched.folder / (std::string(name) + ".so");
    if (!has_entry(searched, file)) continue;
    if (found.file.empty()) {
      found.file = std::move(file);
    } else if (!is_same_file(found.file, file)) {
      found.shadowed.push_back(std::move(file));
    }
  }
  return found.file.empty() ? std::nullopt : std::optional(std::move(found));
}

std::set<std::string> installed_names(std::string_view kind, const std::vector<SearchFolder>& folders) {
  std::set<std::string> out;
  for (const SearchFolder& folder : folders)
    for (const fs::path& file : candidates(folder.folder))
      if (const std::string name = file.stem().string(); name.starts_with(kind_named(kind).prefix)) out.insert(name);
  return out;
}

std::string installed_text(std::string_view kind, const std::vector<SearchFolder>& folders) {
  std::string out;
  for (const std::string& name : installed_names(kind, folders)) out.append(out.empty() ? "" : ", ").append(name);
  return text("installed {}: {}", kind_named(kind).plural, out.empty() ? "none" : out);
}

std::string add_folder_hint(FolderChoice choice) {
  const char* more = choice == FolderChoice::key    ? "plugins.path or "
                     : choice == FolderChoice::flag ? "--path or "
                                                    : "";
  return text("correct the name, or name the plugin's folder with {}TRIAX_PLUGIN_PATH", more);
}

Found find(std::string_view name, const std::vector<SearchFolder>& folders, std::string_view kind,
           FolderChoice choice) {
  if (std::optional<Found> found = try_find(name, folders)) return std::move(*found);
  if (kind.empty()) kind = kind_of(name);
  std::vector<std::string> names;
  std::vector<std::string> looked_in;
  for (const SearchFolder& searched : folders) {
    for (const fs::path& candidate : candidates(searched.folder)) {
      const std::string stem = candidate.stem().string();
      const std::string_view other = kind_of(stem); // empty: the name does not say its kind
      if (kind.empty() || other.empty() || other == kind) names.push_back(stem);
    }
    looked_in.push_back(described(searched));
  }
  std::string near;
  for (const auto& candidate : nearest(name, names)) near += text("{}\"{}\"", near.empty() ? "" : " or ", candidate);
  throw Error(text("plugin \"{}\" was not found{}", name, near.empty() ? "" : text("; did you mean {}?", near)), {},
              text("looked in: {}\n  {}{}", listed_folders(looked_in),
                   kind.empty() ? "" : installed_text(kind, folders) + "\n  ", add_folder_hint(choice)));
}

bool is_path(std::string_view given) {
  return given.find('/') != std::string_view::npos || given.ends_with(".so");
}

Found locate(std::string_view given, const std::vector<SearchFolder>& folders, std::string_view kind,
             FolderChoice choice) {
  if (!is_path(given)) return find(given, folders, kind, choice);
  std::error_code unreadable;
  if (fs::symlink_status(given, unreadable).type() == fs::file_type::not_found)
    throw Error("no such file", shortened(given), "triax plugins list shows the plugins that are found by name");
  return {given, {}};
}

} // namespace triax::plugin
