// SPDX-License-Identifier: Apache-2.0
// Reads TRIAX_GPU_* variables.
#include "settings.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <stdexcept>

namespace triax::gpu_stand_in {

namespace {

constexpr int kMaxDevices = 128;

std::uint64_t parse_number(std::string_view text, std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > max) {
    throw std::invalid_argument("\"" + std::string(text) + "\" must be a number of at most " + std::to_string(max));
  }
  return number;
}

bool parse_switch(std::string_view text) {
  if (text == "0" || text == "1") return text == "1";
  throw std::invalid_argument("\"" + std::string(text) + "\" must be 0 or 1");
}

bool parse_products(std::string_view text) {
  if (text == "zero" || text == "computed") return text == "zero";
  throw std::invalid_argument("\"" + std::string(text) + "\" must be computed or zero");
}

RdmaWrites parse_rdma_writes(std::string_view text) {
  if (text == "ordered") return RdmaWrites::kOrdered;
  if (text == "flushed-by-waits") return RdmaWrites::kFlushedByWaits;
  if (text == "flushed-by-host") return RdmaWrites::kFlushedByHost;
  throw std::invalid_argument("\"" + std::string(text) + "\" must be ordered, flushed-by-waits or flushed-by-host");
}

// From the default of each GPU, 48 KiB, to the most that one has (compute capability 9.0).
std::size_t parse_shared_bytes(std::string_view text) {
  const std::size_t bytes = parse_bytes(text);
  if (bytes < std::size_t{48} << 10 || bytes > std::size_t{227} << 10) {
    throw std::invalid_argument("\"" + std::string(text) + "\" must be a size from 48K to 227K");
  }
  return bytes;
}

// Checked here for the libraries that read them, which do not report an error.
void check_host(std::string_view text) {
  if (text != "baseline") throw std::invalid_argument("\"" + std::string(text) + "\" must be baseline");
}
void check_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0)) {
    throw std::invalid_argument("\"" + std::string(text) + "\" must be a number of seconds above 0");
  }
}

void read(const char* name, const std::function<void(std::string_view)>& take) {
  const char* text = std::getenv(name);
  if (!text) return;
  try {
    take(text);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "[gpu stand-in] %s: %s\n", name, e.what());
    std::_Exit(2);
  }
}

Settings read_all() {
  Settings s;
  read("TRIAX_GPU_DEVICES", [&](auto text) { s.devices = static_cast<int>(parse_number(text, kMaxDevices)); });
  read("TRIAX_GPU_MEMORY", [&](auto text) { s.memory_bytes = parse_bytes(text); });
  read("TRIAX_GPU_SHARED_MEMORY", [&](auto text) { s.shared_bytes = parse_shared_bytes(text); });
  read("TRIAX_GPU_SEED", [&](auto text) { s.seed = parse_number(text); });
  read("TRIAX_GPU_FAIL", [&](auto text) { s.failures = parse_failures(text); });
  read("TRIAX_GPU_LOG", [&](auto text) { s.log = parse_switch(text); });
  read("TRIAX_GPU_WAIT_VALUES", [&](auto text) { s.wait_values = parse_switch(text); });
  read("TRIAX_GPU_RDMA_WRITES", [&](auto text) { s.rdma_writes = parse_rdma_writes(text); });
  read("TRIAX_GPU_COUNTS", [&](auto text) { s.counts = parse_switch(text); });
  read("TRIAX_GPU_PROFILE", [&](auto text) { s.profile_file = text; });
  read("TRIAX_GPU_PRODUCTS", [&](auto text) { s.zero_products = parse_products(text); });
  read("TRIAX_GPU_THREADS", [&](auto text) { s.threads = static_cast<unsigned>(parse_number(text, 1024)); });
  read("TRIAX_GPU_HOST", check_host);
  read("TRIAX_GPU_NCCL_REPORT_S", check_seconds);
  return s;
}

// When the library is loaded, before main(): otherwise the first call of a rank would end the process.
[[gnu::constructor]] void check_all() {
  static_cast<void>(read_all());
}

} // namespace

std::size_t parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit == std::string_view::npos) return parse_number(text, std::size_t{1} << 40);
  const std::size_t shift = 10 * (unit + 1);
  return parse_number(text.substr(0, text.size() - 1), (std::size_t{1} << 40) >> shift) << shift;
}

std::vector<PlannedFailure> parse_failures(std::string_view text) {
  std::vector<PlannedFailure> failures;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const std::size_t colon = entry.find(':'), at = entry.find('@');
    if (colon == 0 || colon == std::string_view::npos || at < colon) {
      throw std::invalid_argument("\"" + std::string(entry) + "\" must be CALL:NUMBER or CALL:NUMBER@DEVICE");
    }
    PlannedFailure failure{std::string(entry.substr(0, colon)), 0, std::nullopt};
    failure.number = parse_number(entry.substr(colon + 1, at == std::string_view::npos ? at : at - colon - 1));
    if (failure.number == 0) throw std::invalid_argument("\"" + std::string(entry) + "\": calls are counted from 1");
    if (at != std::string_view::npos)
      failure.device = static_cast<int>(parse_number(entry.substr(at + 1), kMaxDevices));
    failures.push_back(std::move(failure));
  }
  return failures;
}

const Settings& settings() {
  static const Settings& read_once = *new Settings(read_all()); // used until the process has ended
  return read_once;
}

bool has_zero_products() {
  return settings().zero_products;
}

} // namespace triax::gpu_stand_in
