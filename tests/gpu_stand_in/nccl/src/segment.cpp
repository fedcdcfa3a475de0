// SPDX-License-Identifier: Apache-2.0
#include "segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace triax::gpu_stand_in {

Segment* open_segment(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* at = MAP_FAILED;
  if (ftruncate(file, sizeof(Segment)) == 0) {
    at = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Segment*>(at);
}

void unlink_segment(const std::string& name) {
  shm_unlink(name.c_str());
}

bool is_process_alive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(process));
  std::FILE* file = std::fopen(path, "r");
  if (!file) return errno != ENOENT;
  char state = '?';
  const int read = std::fscanf(file, "%*d %*[^)]) %c", &state);
  std::fclose(file);
  return read != 1 || (state != 'Z' && state != 'X');
}

} // namespace triax::gpu_stand_in
