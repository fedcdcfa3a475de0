// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/export_weights.hpp"

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/block_converter.hpp"
#include "checkpoint/weights.hpp"
#include "os/durable_file.hpp"
#include "os/folder_access.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr const char* kExportHint =
    "free space there, or name a file in a folder that exists and that this user may write to";

/// A folder or a device is never replaced.
void refuse_output(const fs::path& file, bool replace) {
  std::error_code unknown;
  if (file.empty()) throw Error("FILE is empty", {}, "name the file to write");
  if (const std::string why = os::why_not_creatable(file); !why.empty())
    throw Error("cannot be written: " + why, file.string(), "name a file in a folder where this user can create files");
  if (fs::exists(file.parent_path() / kManifestFile, unknown))
    throw Error("is in a checkpoint, which it would damage", file.string(), "name a file in another folder");
  if (fs::symlink_status(file, unknown).type() == fs::file_type::not_found) return;
  if (fs::is_symlink(file, unknown)) throw Error("is a symbolic link", file.string(), "name the file that it leads to");
  const std::string problem = os::why_not_a_file(file);
  if (!problem.empty()) throw Error(problem, file.string(), "name another file");
  if (!replace) throw Error("already exists", file.string(), "add --force to replace it");
}

std::vector<std::pair<std::string, std::string>> metadata_of(const Manifest& manifest) {
  return {{"step", std::to_string(manifest.training.step)},
          {"tokens", std::to_string(manifest.tokens)},
          {"triax", manifest.engine}};
}

} // namespace

WeightsExport::WeightsExport(TensorReader& from, fs::path file, const ExportChoice& choice)
    : from_(from), file_(std::move(file)), choice_(choice) {
  refuse_output(file_, choice.replace);
}

ExportedWeights WeightsExport::write(const StopRequest& stop) {
  check_weights(from_, stop);
  const std::vector<const SavedTensor*> weights = weights_of(from_.manifest());
  std::vector<TensorEntry> entries;
  entries.reserve(weights.size());
  for (const SavedTensor* tensor : weights)
    entries.push_back({tensor->parameter, choice_.dtype.value_or(tensor->dtype), tensor->shape, 0});
  const std::string header = make_header(entries, metadata_of(from_.manifest()));
  os::StagedFile out(file_, kExportHint);
  out.write(std::as_bytes(std::span(header)));
  std::vector<std::byte> block;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const SavedTensor& tensor = *weights[i];
    BlockConverter converter(name_of(tensor), tensor.dtype, entries[i].dtype);
    for_each_block(tensor.shape, [&](const Shape& begin, const Shape& size) {
      check_stop(stop);
      block.resize(static_cast<std::size_t>(size.elements()) * bytes_of(tensor.dtype));
      from_.read(tensor, begin, size, block.data());
      out.write(converter.convert(block));
    });
  }
  out.commit(choice_.replace);
  return {weights.size(), parameters_of(from_.manifest()),
          header.size() + entries.back().begin + entries.back().bytes()};
}

} // namespace triax::checkpoint
