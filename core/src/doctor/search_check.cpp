// SPDX-License-Identifier: Apache-2.0
#include "doctor/search_check.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <system_error>

#include "base/printable.hpp"
#include "plugin/did_you_mean.hpp"
#include "triax/error.hpp"

namespace triax::doctor {

namespace {

namespace fs = std::filesystem;

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// "sched-mine" for libsched-mine.so.1: the name that its author meant.
std::string meant_name(const std::string& file_name) {
  std::string name = lower_case(file_name);
  if (name.starts_with("lib")) name.erase(0, 3);
  return name.substr(0, name.find('.'));
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

/// File names in `folder` that the user may have meant by `name`.
std::vector<std::string> similar_files(const fs::path& folder, const std::string& name) {
  std::vector<std::string> stems, out;
  for (const std::string& file : file_names(folder)) {
    const bool is_plugin = file.ends_with(".so");
    const std::string stem = fs::path(file).stem().string();
    const bool has_other_form = meant_name(file) == lower_case(name);  // libNAME.so, NAME.so.1, NAME
    const bool lacks_prefix = is_plugin && stem.ends_with("-" + name); // "gpipe" for sched-gpipe
    if (has_other_form || lacks_prefix) {
      out.push_back(file);
    } else if (is_plugin) {
      stems.push_back(stem);
    }
  }
  for (const std::string& stem : plugin::nearest(name, stems)) out.push_back(stem + ".so");
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : " or ").append(word);
  return out;
}

/// "/x/plugins (TRIAX_PLUGIN_PATH): 3 plugins; did you mean sched-gpipe.so?"
std::string searched_text(const plugin::SearchFolder& searched, const std::string& name) {
  const std::string origin = searched.origin.empty() ? "of Triax" : searched.origin;
  const std::string folder = text("{} ({})", shortened(searched.folder.string()), origin);
  std::error_code unreadable;
  if (!fs::exists(searched.folder, unreadable)) return folder + ": no such folder";
  if (!fs::is_directory(searched.folder, unreadable)) return folder + ": is not a folder";
  const std::size_t count = plugin::candidates(searched.folder).size();
  const std::vector<std::string> similar = similar_files(searched.folder, name);
  return text("{}: {} plugin{}; {}", folder, count, count == 1 ? "" : "s",
              similar.empty() ? std::string("none is similar") : text("did you mean {}?", joined(similar)));
}

/// The next step if another file is there in place of NAME.so; empty if no file has another form of the name.
std::string next_step(const std::vector<plugin::SearchFolder>& folders, const std::string& name) {
  for (const plugin::SearchFolder& searched : folders) {
    for (const std::string& file : similar_files(searched.folder, name)) {
      const std::string stem = fs::path(file).stem().string();
      if (meant_name(file) == lower_case(name) && stem != lower_case(name))
        return text("a plugin's file is named NAME.so, such as {}.so, not {}: build it with triax_add_plugin({} ...)",
                    name, file, name);
      return text("write {}", stem);
    }
  }
  return plugin::add_folder_hint(plugin::FolderChoice::flag);
}

Check not_found(const std::string& name, const std::vector<plugin::SearchFolder>& folders) {
  Check out{"search", Outcome::problem, text("plugin \"{}\" was not found", shortened(name))};
  for (const plugin::SearchFolder& searched : folders) out.details.push_back(searched_text(searched, name));
  out.next = next_step(folders, name);
  return out;
}

void search_by_name(const std::string& name, const std::vector<plugin::SearchFolder>& folders, Diagnosis& out) {
  std::optional<plugin::Found> found;
  try {
    found = plugin::try_find(name, folders);
  } catch (const Error& error) { // an invalid name or folder
    out.checks.push_back({"search", Outcome::problem, error.message(), {}, error.hint()});
    return;
  }
  if (!found) {
    out.checks.push_back(not_found(name, folders));
    return;
  }
  out.file = fs::absolute(found->file).lexically_normal();
  Check check{"search", found->shadowed.empty() ? Outcome::ok : Outcome::note, out.file.string()};
  for (const fs::path& hidden : found->shadowed) check.details.push_back("hides " + hidden.string());
  out.checks.push_back(std::move(check));
}

void search_by_path(const fs::path& path, Diagnosis& out) {
  std::error_code failed;
  const fs::path file = fs::absolute(path).lexically_normal();
  if (fs::symlink_status(file, failed).type() != fs::file_type::not_found) {
    out.file = file;
    out.checks.push_back({"search", Outcome::ok, file.string()});
    return;
  }
  Check check{"search", Outcome::problem, text("{}: no such file", file.string())};
  if (fs::path folder = file.parent_path(); fs::is_directory(folder, failed)) {
    check.details.push_back(searched_text({folder, "its folder"}, file.stem().string()));
  } else {
    while (folder.has_relative_path() && !fs::is_directory(folder, failed)) folder = folder.parent_path();
    check.details.push_back(text("of its path, only {} exists", folder.string()));
  }
  check.next = "correct the path; triax plugins list shows the plugins that are found by name";
  out.checks.push_back(std::move(check));
}

} // namespace

void check_search(const std::string& plugin, const std::vector<plugin::SearchFolder>& folders, Diagnosis& out) {
  if (const Refusals answer = plugin::check_environment(); !answer.empty())
    out.checks.push_back({"search", Outcome::problem, answer.front().message, {}, answer.front().hint});
  if (plugin::is_path(plugin)) {
    search_by_path(plugin, out);
  } else {
    search_by_name(plugin, folders, out);
  }
}

} // namespace triax::doctor
