// SPDX-License-Identifier: Apache-2.0
#include "ucx_settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

namespace triax::comm_ucx {

namespace {

using triax::text;

/// Parses UCX's form of sizes: "1m", "256kb", "8192"; empty for its keywords ("inf", "auto").
std::optional<std::size_t> bytes_of(const std::string& size) {
  char* end = nullptr;
  const double number = std::strtod(size.c_str(), &end);
  if (end == size.c_str() || !(number >= 0 && number < 1e15)) return std::nullopt; // strtod accepts "inf"
  double scale = 1;
  switch (std::tolower(static_cast<unsigned char>(*end))) {
    case 'k':
      scale = 1 << 10;
      ++end;
      break;
    case 'm':
      scale = 1 << 20;
      ++end;
      break;
    case 'g':
      scale = 1 << 30;
      ++end;
      break;
    default:
      break;
  }
  if (*end == 'b' || *end == 'B') ++end;
  if (*end != '\0') return std::nullopt;
  return static_cast<std::size_t>(number * scale);
}

class Reader {
 public:
  explicit Reader(Settings& settings) : settings_(settings) {}

  /// An option whose empty value leaves the choice to UCX.
  void key(const char* name, const char* variable, const std::string& value) {
    const char* given = std::getenv(variable);
    if (given) {
      settings_.restrictions.push_back({text("{} = \"{}\" in the environment", variable, given), variable});
    } else if (!value.empty()) {
      settings_.restrictions.push_back({text("{} = \"{}\"", name, value), name});
    }
    if (value.empty()) return;
    if (!given) return change(variable, value);
    if (value != given) contradict(name, value, variable, given);
  }

  void threshold(std::size_t bytes) {
    constexpr const char* kVariable = "UCX_RNDV_THRESH";
    const char* given = std::getenv(kVariable);
    if (!given) return change(kVariable, std::to_string(bytes));
    if (bytes_of(given) == bytes) return;
    if (bytes != kRendezvousThreshold) return contradict("rndv_threshold", std::to_string(bytes), kVariable, given);
    settings_.notes.push_back(
        text("{} = {} in the environment overrides the default rndv_threshold = {}", kVariable, given, bytes));
  }

 private:
  void change(const char* variable, const std::string& value) {
    settings_.changes.emplace_back(variable + sizeof("UCX_") - 1, value);
  }
  void contradict(const char* name, const std::string& value, const char* variable, const char* given) {
    settings_.refusals.add(triax::make_refusal(triax::ErrorCode::kConflict, {text("comm.{}", name)},
                                               "comm-ucx: {} = {}, but {} = {} in the environment", name, value,
                                               variable, given)
                               .with_hint("remove the key, or unset {}", variable));
  }

  Settings& settings_;
};

/// The environment's value if there is one, else `value`.
std::string effective(const char* variable, const std::string& value) {
  const char* given = std::getenv(variable);
  return given ? given : value;
}

/// True if a list in the form of UCX_TLS permits shared memory between ranks of one machine.
bool has_memory(const std::string& transports) {
  if (transports.empty() || transports.front() == '^') return true;
  for (const char* name : {"all", "shm", "sm", "mm", "posix", "sysv", "xpmem"}) {
    const std::string wanted = name;
    for (std::size_t begin = 0; begin <= transports.size();) {
      const std::size_t end = std::min(transports.find(',', begin), transports.size());
      if (transports.compare(begin, end - begin, wanted) == 0) return true;
      begin = end + 1;
    }
  }
  return false;
}

} // namespace

Settings read_settings(const triax::Options& options) {
  Settings settings;
  const std::string& wait = options.text("wait");
  settings.wait = wait == "spin" ? Wait::spin : wait == "event" ? Wait::event : Wait::yield;
  const std::string& memory = options.text("device_memory");
  settings.device_memory = memory == "direct"   ? DeviceMemory::direct
                           : memory == "staged" ? DeviceMemory::staged
                                                : DeviceMemory::automatic;
  settings.staging_bytes = static_cast<std::size_t>(options.integer("staging_bytes"));
  settings.quiet = !std::getenv("UCX_LOG_LEVEL") && !std::getenv("UCX_LOG_FILE");
  Reader reader(settings);
  reader.key("transports", "UCX_TLS", options.text("transports"));
  settings.memory = has_memory(effective("UCX_TLS", options.text("transports")));
  reader.key("devices", "UCX_NET_DEVICES", options.text("devices"));
  settings.devices = effective("UCX_NET_DEVICES", options.text("devices"));
  reader.threshold(static_cast<std::size_t>(options.integer("rndv_threshold")));
  return settings;
}

} // namespace triax::comm_ucx
