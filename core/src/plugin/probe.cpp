// SPDX-License-Identifier: Apache-2.0
#include "plugin/probe.hpp"

#include <algorithm>

#include "plugin/loader.hpp"
#include "plugin/plugin_call.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace fs = std::filesystem;

namespace {

std::string load_all(std::span<const fs::path> files) {
  for (const fs::path& file : files) {
    // load() records the calls that it knows by name; the rest, such as reading a descriptor, belongs to the file, too.
    const CallScope call(file.stem().string(), "its descriptor", file);
    try {
      load(file, "");
    } catch (const Error&) { // the calling process gets the same error from load()
      continue;
    }
  }
  return {};
}

} // namespace

std::map<fs::path, ProbeFailure> probe_loading(std::span<const fs::path> files, const CallLimits& limits) {
  std::vector<fs::path> rest;
  std::ranges::copy_if(files, std::back_inserter(rest), [](const fs::path& file) { return !is_loaded(file); });
  std::map<fs::path, ProbeFailure> failures;
  while (!rest.empty()) {
    const ProbeResult result = run_probe([&rest] { return load_all(rest); }, ProbeOutput::captured, limits);
    if (!result.failure) break;
    auto failed = std::ranges::find(rest, result.failure->file);
    if (failed == rest.end()) failed = rest.begin(); // it died between two files
    failures.emplace(*failed, *result.failure);
    rest.erase(rest.begin(), failed + 1);
  }
  return failures;
}

} // namespace triax::plugin
