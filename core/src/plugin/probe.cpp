// SPDX-License-Identifier: Apache-2.0
#include "plugin/probe.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plugin/loader.hpp"
#include "plugin/plugin_call.hpp"
#include "plugin/probe_answer.hpp"
#include "plugin/rejection.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace fs = std::filesystem;

namespace {

/// Returns the files that were rejected before their initializers ran to their end, with the errors.
std::string load_all(std::span<const fs::path> files) {
  nlohmann::json rejected = nlohmann::json::array();
  for (const fs::path& file : files) {
    // load() records the calls that it knows by name; the rest, such as reading a descriptor, belongs to the file, too.
    const CallScope call(file.stem().string(), "its descriptor", file);
    try {
      load(file, "");
    } catch (const Error& error) { // of a loaded file, the calling process gets the same error from load()
      if (!is_loaded(file)) rejected.push_back({file.string(), error.message(), error.where(), error.hint()});
    }
  }
  return pack(rejected);
}

void reject_all(const std::string& packed) {
  for (const nlohmann::json& of : unpack(packed))
    reject(of.at(0).get<std::string>(), Error(of.at(1), of.at(2), of.at(3)));
}

} // namespace

std::map<fs::path, ProbeFailure> probe_loading(std::span<const fs::path> files, const CallLimits& limits) {
  std::vector<fs::path> rest;
  std::ranges::copy_if(files, std::back_inserter(rest),
                       [](const fs::path& file) { return !is_loaded(file) && !is_rejected(file); });
  std::map<fs::path, ProbeFailure> failures;
  while (!rest.empty()) {
    const ProbeResult result = run_probe([&rest] { return load_all(rest); }, ProbeOutput::captured, limits);
    if (!result.failure) {
      reject_all(result.output);
      break;
    }
    auto failed = std::ranges::find(rest, result.failure->file);
    if (failed == rest.end()) failed = rest.begin(); // it died between two files
    failures.emplace(*failed, *result.failure);
    rest.erase(failed); // the answer for the files before it was lost
  }
  return failures;
}

} // namespace triax::plugin
