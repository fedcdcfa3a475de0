// SPDX-License-Identifier: Apache-2.0
#include "os/machine.hpp"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>

#include "os/cpu_quota.hpp"

namespace triax::os {

namespace {

utsname system_names() {
  utsname out{};
  return ::uname(&out) == 0 ? out : utsname{};
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return system_names().machine;
}

/// MemAvailable of /proc/meminfo.
std::int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (std::int64_t kib = 0; file >> key >> kib; file.ignore(64, '\n'))
    if (key == "MemAvailable:") return kib << 10;
  return 0;
}

} // namespace

Machine this_machine() {
  const utsname names = system_names();
  Machine out{processor_name(), available_cores(), 0, free_memory(), std::string(names.sysname) + " " + names.release};
  if (getloadavg(&out.load, 1) < 1) out.load = 0;
  return out;
}

} // namespace triax::os
