// SPDX-License-Identifier: Apache-2.0
// Named shared memory (/dev/shm) that processes leave if they are killed. A library such as UCX creates a file, and
// removes its name once it has it open; a SIGKILL between the two leaves the memory occupied until the next boot.
//
// Threads: any. Ownership: values. Blocking: collect() up to 0.5 s, until the processes have stopped. Errors: none;
// what cannot be read or removed is left.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace triax::os {

class NamedMemory {
 public:
  /// Stops the processes (SIGSTOP), which are to be killed next, and finds the files of this user in /dev/shm that they
  /// have open or mapped, that still have a name, and whose name begins with `prefix`.
  void collect(std::span<const pid_t> processes, std::string_view prefix);
  /// Once the processes have ended: removes what collect() has found, unless another file has the name now.
  void remove() noexcept;

  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  void add(std::string_view target, std::string_view prefix);

  std::vector<std::filesystem::path> files_;
  std::vector<ino_t> inodes_; // of files_
};

} // namespace triax::os
