// SPDX-License-Identifier: Apache-2.0
#include "os/named_memory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <system_error>

#include "triax/text.hpp"

namespace triax::os {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "/dev/shm/";
constexpr int kMaxStopPolls = 500; // waits for processes to stop, of a millisecond each
constexpr useconds_t kStopPollUs = 1000;

fs::path folder_of(pid_t process) {
  return text("/proc/{}", process);
}

/// The state follows the name of the program, which may contain anything.
bool runs(pid_t process) {
  std::ifstream file(folder_of(process) / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false; // has ended
  return std::string_view("TtZX").find(line[name_end + 2]) == std::string_view::npos;
}

/// The file's inode if it is a regular file of this user with one name; else 0.
ino_t inode_of(const fs::path& file) noexcept {
  struct stat found {};
  if (lstat(file.c_str(), &found) != 0) return 0;
  const bool is_own = S_ISREG(found.st_mode) && found.st_uid == geteuid() && found.st_nlink == 1;
  return is_own ? found.st_ino : 0;
}

} // namespace

void NamedMemory::collect(std::span<const pid_t> processes, std::string_view prefix) {
  for (const pid_t process : processes) kill(process, SIGSTOP);
  for (int polls = 0; polls < kMaxStopPolls && std::ranges::any_of(processes, runs); ++polls) usleep(kStopPollUs);
  for (const pid_t process : processes) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(process) / "fd", none))
      add(fs::read_symlink(entry.path(), none).native(), prefix);
    std::ifstream maps(folder_of(process) / "maps");
    for (std::string line; std::getline(maps, line);)
      if (const std::size_t begin = line.find(kFolder); begin != std::string::npos) add(line.substr(begin), prefix);
  }
}

/// `target`: a path; a file without a name has " (deleted)" after it, and so does not exist.
void NamedMemory::add(std::string_view target, std::string_view prefix) {
  if (!target.starts_with(kFolder) || !target.substr(kFolder.size()).starts_with(prefix)) return;
  const fs::path file(target);
  if (std::ranges::find(files_, file) != files_.end()) return;
  const ino_t inode = inode_of(file);
  if (inode == 0) return;
  files_.push_back(file);
  inodes_.push_back(inode);
}

void NamedMemory::remove() noexcept {
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (inode_of(files_[i]) == inodes_[i]) unlink(files_[i].c_str());
  files_.clear();
  inodes_.clear();
}

} // namespace triax::os
