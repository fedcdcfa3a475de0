// SPDX-License-Identifier: Apache-2.0
#include "store_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "os/errno_text.hpp"

namespace triax::conformance {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "triax-conformance-", kNew = "new-";

os::Descriptor open_folder(const std::string& path) {
  return os::Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool try_lock(const os::Descriptor& folder) {
  return folder && ::flock(folder.number(), LOCK_EX | LOCK_NB) == 0;
}

bool is_own(const os::Descriptor& folder) {
  struct stat of {};
  return folder && ::fstat(folder.number(), &of) == 0 && of.st_uid == ::geteuid();
}

/// Removes the folders of this user whose processes were all killed.
void remove_abandoned(const fs::path& parent) {
  std::error_code ignored;
  for (fs::directory_iterator each(parent, ignored), end; !ignored && each != end; each.increment(ignored)) {
    const std::string name = each->path().filename();
    if (!name.starts_with(kPrefix) || std::string_view(name).substr(kPrefix.size()).starts_with(kNew)) continue;
    const os::Descriptor folder = open_folder(each->path());
    std::error_code unremoved; // another process may remove it at the same time
    if (is_own(folder) && try_lock(folder)) fs::remove_all(each->path(), unremoved);
  }
}

} // namespace

/// It gets its name once it is locked: until then, another process could take it for abandoned.
StoreFolder::StoreFolder(Activities& shared) : shared_(shared) {
  const fs::path parent = fs::temp_directory_path();
  remove_abandoned(parent);
  std::string made = (parent / fs::path(text("{}{}XXXXXX", kPrefix, kNew))).string();
  if (!::mkdtemp(made.data())) throw Error(text("cannot create a folder: {}", errno_text()), made);
  lock_ = open_folder(made);
  if (!try_lock(lock_)) throw Error(text("cannot lock the folder: {}", errno_text()), made);
  path_ = (parent / text("{}{}", kPrefix, made.substr(made.size() - 6))).string();
  fs::rename(made, path_);
  if (path_.size() < sizeof shared_.store_folder) path_.copy(shared_.store_folder, path_.size());
}

StoreFolder::~StoreFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  std::ranges::fill(shared_.store_folder, '\0');
}

} // namespace triax::conformance
