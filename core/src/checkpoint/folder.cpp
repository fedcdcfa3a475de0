// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.hpp"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "checkpoint/manifest.hpp"
#include "os/durable_file.hpp"
#include "os/path_names.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kHidden = ".step-", kReplaced = ".replaced";
constexpr std::size_t kStepDigits = 8, kRankDigits = 5; // so that names sort; more for larger numbers

std::string padded(std::int64_t number, std::size_t digits) {
  const std::string plain = std::to_string(number);
  return std::string(plain.size() < digits ? digits - plain.size() : 0, '0') + plain;
}

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed)
    throw Error(text("cannot be renamed to {}: {}", to.filename(), failed.message()), from.string(),
                "allow this user to change the folder of checkpoints, or choose another run.dir");
}

/// Hidden first, because removing it takes time, and a part of a checkpoint must not look like one.
void remove_folder(const fs::path& folder) {
  fs::path hidden = folder;
  if (!folder.filename().string().starts_with('.')) {
    hidden = folder.parent_path() / ("." + folder.filename().string() + ".removed");
    rename_folder(folder, hidden);
  }
  std::error_code failed;
  fs::remove_all(hidden, failed);
  if (failed)
    throw Error("cannot be removed: " + failed.message(), hidden.string(),
                "remove it yourself, or allow this user to change it");
}

} // namespace

std::string folder_name(std::int64_t step) {
  return std::string(kPrefix) + padded(step, kStepDigits);
}

std::string file_name(std::string_view content, int rank) {
  return text("{}-{}.safetensors", content, padded(rank, kRankDigits));
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || rest != end || folder_name(step) != name) return std::nullopt;
  return step;
}

namespace {

bool is_complete(const fs::path& folder) {
  return os::is_there(folder / kManifestFile);
}

/// The folders that have the name of a checkpoint, by step.
std::vector<FoundCheckpoint> named_in(const fs::path& dir) {
  std::vector<FoundCheckpoint> out;
  std::error_code failed;
  const fs::directory_iterator entries(dir, failed);
  const bool is_dangling_link = failed == std::errc::no_such_file_or_directory && os::is_there(dir);
  if (is_dangling_link)
    throw Error("is a symbolic link to a folder that does not exist", dir.string(),
                "create that folder, or remove the link");
  if (failed == std::errc::not_a_directory)
    throw Error("is not a folder", dir.string(), "rename it, or choose another run.dir");
  if (failed && failed != std::errc::no_such_file_or_directory)
    throw Error("cannot be read: " + failed.message(), dir.string(),
                "let this user read it, or choose another run.dir");
  for (const fs::directory_entry& entry : entries)
    if (const std::optional<std::int64_t> step = step_of(entry.path().filename().string()))
      out.push_back({*step, entry.path()});
  std::ranges::sort(out, {}, &FoundCheckpoint::step);
  return out;
}

} // namespace

std::vector<FoundCheckpoint> checkpoints_in(const fs::path& dir) {
  std::vector<FoundCheckpoint> out = named_in(dir);
  std::erase_if(out, [](const FoundCheckpoint& of) { return !is_complete(of.folder); });
  return out;
}

std::string damaged_hint(const fs::path& folder) {
  const std::string restore = "the checkpoint is damaged: restore it from a backup";
  const std::optional<std::int64_t> step = step_of(folder.filename().string());
  if (!step) return restore + ", or use another";
  std::vector<FoundCheckpoint> earlier;
  try {
    earlier = checkpoints_in(folder.has_parent_path() ? folder.parent_path() : ".");
  } catch (const Error&) { // the folder was moved in the meantime
    return restore + ", or use another";
  }
  std::erase_if(earlier, [&](const FoundCheckpoint& of) { return of.step >= *step; });
  return earlier.empty() ? restore + ", or begin anew with triax train --fresh, because no earlier checkpoint exists"
                         : text("{}, or move its folder away, so that triax train continues after step {}", restore,
                                earlier.back().step);
}

std::vector<fs::path> incomplete_in(const fs::path& dir) {
  std::vector<fs::path> out;
  for (const FoundCheckpoint& of : named_in(dir))
    if (!is_complete(of.folder)) out.push_back(of.folder);
  return out;
}

fs::path partial_folder(const fs::path& dir, std::int64_t step, const std::string& attempt) {
  return dir / text(".{}.partial-{}", folder_name(step), attempt);
}

namespace {

/// ".step-00000100.replaced"
fs::path replaced_name(const fs::path& folder) {
  return folder.parent_path() / ("." + folder.filename().string() + std::string(kReplaced));
}

/// A checkpoint that was to be replaced, if what should replace it is not there.
bool restore_replaced(const fs::path& hidden) {
  const std::string name = hidden.filename().string();
  if (!name.ends_with(kReplaced)) return false;
  const fs::path folder = hidden.parent_path() / name.substr(1, name.size() - 1 - kReplaced.size());
  if (os::is_there(folder) || !is_complete(hidden)) return false;
  rename_folder(hidden, folder);
  return true;
}

} // namespace

void remove_leftovers(const fs::path& dir) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, unreadable))
    if (entry.path().filename().string().starts_with(kHidden)) found.push_back(entry.path());
  for (const fs::path& folder : found)
    if (!restore_replaced(folder)) remove_folder(folder);
}

namespace {

/// Atomic: a complete checkpoint with this name always exists. False if the file system cannot.
bool exchange(const fs::path& partial, const fs::path& folder) {
  return ::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0;
}

/// Without exchange(), as on NFS. If the process is killed between the two calls, the next start restores the earlier
/// folder.
void replace_in_two_steps(const fs::path& partial, const fs::path& folder) {
  const fs::path earlier = replaced_name(folder);
  std::error_code none;
  fs::remove_all(earlier, none); // could not be removed before
  rename_folder(folder, earlier);
  try {
    rename_folder(partial, folder);
  } catch (...) {
    fs::rename(earlier, folder, none);
    throw;
  }
  os::sync_folder(folder.parent_path());
  remove_folder(earlier);
}

} // namespace

void commit(const fs::path& partial, const fs::path& dir, std::int64_t step) {
  const fs::path folder = dir / folder_name(step);
  os::sync_folder(partial);
  if (is_complete(folder)) {
    if (!exchange(partial, folder)) return replace_in_two_steps(partial, folder);
    os::sync_folder(dir);
    return remove_folder(partial); // now the earlier one
  }
  if (os::is_there(folder)) {
    int number = 1;
    const auto aside = [&] { return dir / text("{}-{}", folder_name(step), number); };
    while (os::is_there(aside())) ++number;
    rename_folder(folder, aside());
  }
  rename_folder(partial, folder);
  os::sync_folder(dir);
}

std::vector<std::string> remove_old(const fs::path& dir, std::int64_t keep, std::int64_t keep_every) {
  std::vector<std::string> out;
  std::vector<FoundCheckpoint> found = checkpoints_in(dir);
  const auto newest = static_cast<std::size_t>(keep);
  for (std::size_t i = 0; i + newest < found.size(); ++i) {
    if (keep_every != 0 && found[i].step % keep_every == 0) continue;
    remove_folder(found[i].folder);
    out.push_back(found[i].folder.filename().string());
  }
  return out;
}

} // namespace triax::checkpoint
