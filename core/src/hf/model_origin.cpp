// SPDX-License-Identifier: Apache-2.0
#include "hf/model_origin.hpp"

#include <optional>
#include <variant>

#include "checkpoint/manifest.hpp"
#include "hf/carried_files.hpp"
#include "hf/model_config.hpp"
#include "os/path_names.hpp"
#include "plugin/option_text.hpp"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxGenerations = 1000; // checkpoints may name each other

/// The checkpoint that the run began with; empty if it did not. Throws Error for a damaged value.
fs::path begins_with(const checkpoint::Manifest& manifest) {
  const auto found = manifest.config.find("checkpoint.from");
  if (found == manifest.config.end()) return {};
  constexpr triax_option kFrom = option_path("from", "", "checkpoint");
  return std::get<fs::path>(plugin::parse_option(kFrom, found->second));
}

} // namespace

ModelOrigin find_origin(const checkpoint::TensorReader& from) {
  fs::path named = from.folder() / checkpoint::kManifestFile;
  try {
    fs::path next = begins_with(from.manifest());
    for (int i = 0; i < kMaxGenerations && !next.empty(); ++i) {
      if (os::is_there(next / kCarriedFolder / kConfigFile)) return {next / kCarriedFolder, {}};
      named = next / checkpoint::kManifestFile;
      next = begins_with(checkpoint::read_manifest(named));
    }
    if (next.empty()) return {};
    return {{}, text("{}: checkpoint.from does not lead to the checkpoint of a first run", from.folder())};
  } catch (const Error& error) {
    return {{}, text("{}: {}", named, error.message())};
  }
}

} // namespace triax::hf
