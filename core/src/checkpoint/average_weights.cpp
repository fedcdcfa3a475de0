// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/average_weights.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "checkpoint/blocks.hpp"
#include "checkpoint/checksum.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/weights.hpp"
#include "os/durable_file.hpp"
#include "triax/error.hpp"
#include "triax/version.h"

namespace triax::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNameAnother = "free space there, or name another folder";

using Readers = std::vector<std::unique_ptr<TensorReader>>;

void refuse_output(const fs::path& output) {
  std::error_code unknown;
  if (output.empty()) throw Error("OUTPUT is empty", {}, "name the folder to write");
  if (fs::exists(output.parent_path() / kManifestFile, unknown))
    throw Error("is in a checkpoint", output.string(), "name a folder beside it");
  if (step_of(output.filename().string()))
    throw Error("has the name of a run's own checkpoint, which a run would continue from", output.string(),
                "choose a name that is not step-N");
  const fs::file_type type = fs::symlink_status(output, unknown).type();
  if (type == fs::file_type::none) // its name is too long, or its folder may not be searched
    throw Error("cannot be created: " + unknown.message(), output.string(), "name another folder");
  if (type != fs::file_type::not_found) throw Error("exists", output.string(), "remove it, or name another folder");
}

void refuse_other_tensor(const TensorReader& first, const TensorReader& other, const std::string& parameter) {
  const SavedTensor *expected = first.find(parameter, kMasterState), *found = other.find(parameter, kMasterState);
  const auto describe = [](const SavedTensor* tensor) {
    return tensor ? text("{}{}", triax::name_of(tensor->dtype), to_text(tensor->shape)) : std::string("missing");
  };
  if (describe(expected) != describe(found))
    throw Error(text("parameter \"{}\" is {}, and {} in {}", parameter, describe(found), describe(expected),
                     first.folder().string()),
                other.folder().string(), "average checkpoints of one model and one train.precision");
}

std::int64_t step_of_reader(const std::unique_ptr<TensorReader>& reader) {
  return reader->manifest().training.step;
}

/// All have the same tensors.
void refuse_other_tensors(const Readers& readers) {
  for (const auto& other : readers)
    for (const auto& of : {readers.front().get(), other.get()})
      for (const SavedTensor* tensor : weights_of(of->manifest()))
        refuse_other_tensor(*readers.front(), *other, tensor->parameter);
}

/// A folder with a hidden name beside its own, which is removed unless it was completed.
class StagedFolder {
 public:
  explicit StagedFolder(const fs::path& folder) : folder_(folder), hidden_(os::partial_name(folder)) {
    std::error_code failed;
    if (!fs::create_directory(hidden_, failed))
      throw Error("cannot be created: " + (failed ? failed.message() : "exists"), folder.string(),
                  failed == std::errc::no_such_file_or_directory
                      ? text("create the folder {}, or name one in an existing folder", folder.parent_path())
                      : "name a folder in one that this user may write to");
  }
  ~StagedFolder() {
    std::error_code ignored;
    if (!complete_) fs::remove_all(hidden_, ignored);
  }
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  os::DurableFile file(const std::string& name) const {
    return os::DurableFile(hidden_ / name, {folder_ / name, kNameAnother});
  }
  void complete() {
    os::sync_folder(hidden_);
    os::rename_to_new(hidden_, folder_, kNameAnother);
    complete_ = true;
  }

 private:
  const fs::path folder_, hidden_;
  bool complete_ = false;
};

/// The mean of one tensor, block by block.
class TensorMean {
 public:
  TensorMean(const Readers& readers, const SavedTensor& tensor) : readers_(readers), tensor_(tensor) {}

  std::span<const std::byte> block(const Shape& begin, const Shape& size) {
    const auto count = static_cast<std::size_t>(size.elements());
    sum_.assign(count, 0);
    values_.resize(count);
    bytes_.resize(count * bytes_of(tensor_.dtype));
    for (const auto& reader : readers_) {
      reader->read(*reader->find(tensor_.parameter, kMasterState), begin, size, bytes_.data());
      to_doubles(tensor_.dtype, bytes_.data(), values_);
      for (std::size_t i = 0; i < count; ++i) sum_[i] += values_[i];
    }
    for (double& value : sum_) value /= static_cast<double>(readers_.size());
    from_doubles(sum_, tensor_.dtype, bytes_.data());
    return bytes_;
  }

 private:
  const Readers& readers_;
  const SavedTensor& tensor_;
  std::vector<double> sum_, values_;
  std::vector<std::byte> bytes_;
};

SavedPart write_means(const Readers& readers, const StagedFolder& folder, const StopRequest& stop) {
  const std::vector<const SavedTensor*> weights = weights_of(readers.front()->manifest());
  std::vector<TensorEntry> entries;
  entries.reserve(weights.size());
  for (const SavedTensor* tensor : weights) entries.push_back({tensor->parameter, tensor->dtype, tensor->shape, 0});
  const std::string name = file_name("weights", 0), header = make_header(entries);
  os::DurableFile file = folder.file(name);
  const auto write = [&file](Checksum& checksum, std::span<const std::byte> bytes) {
    checksum.add(bytes);
    file.write(bytes);
  };
  Checksum of_header;
  write(of_header, std::as_bytes(std::span(header)));
  SavedPart out;
  out.files.push_back({name, header.size() + entries.back().begin + entries.back().bytes(), of_header.text()});
  for (const SavedTensor* tensor : weights) {
    TensorMean mean(readers, *tensor);
    Checksum checksum;
    for_each_block(tensor->shape, [&](const Shape& begin, const Shape& size) {
      check_stop(stop);
      write(checksum, mean.block(begin, size));
    });
    Shape origin = tensor->shape;
    for (int dim = 0; dim < origin.rank(); ++dim) origin[dim] = 0;
    out.tensors.push_back({tensor->parameter,
                           tensor->state,
                           tensor->dtype,
                           tensor->shape,
                           {{name, tensor->parameter, origin, tensor->shape, checksum.text()}}});
  }
  file.finish();
  return out;
}

} // namespace

WeightsAverage::WeightsAverage(std::span<const fs::path> checkpoints, const fs::path& output)
    : output_(output.has_filename() ? output : output.parent_path()) { // "mean" for "mean/"
  TRIAX_REQUIRE(!checkpoints.empty(), "the mean of no checkpoints");
  refuse_output(output_);
  for (const fs::path& folder : checkpoints) readers_.push_back(std::make_unique<TensorReader>(folder));
  refuse_other_tensors(readers_);
}

AveragedWeights WeightsAverage::write(const StopRequest& stop) {
  for (const auto& reader : readers_) check_weights(*reader, stop);
  Manifest manifest = (*std::ranges::max_element(readers_, {}, step_of_reader))->manifest();
  StagedFolder folder(output_);
  manifest.content = write_means(readers_, folder, stop);
  manifest.created = creation_time();
  manifest.engine = TRIAX_VERSION;
  manifest.mean_of.clear();
  for (const auto& reader : readers_) manifest.mean_of.push_back(fs::absolute(reader->folder()).string());
  const std::string json = to_json(manifest);
  os::DurableFile file = folder.file(kManifestFile);
  file.write(std::as_bytes(std::span(json)));
  file.finish();
  folder.complete();
  return {manifest.content.tensors.size(), parameters_of(manifest), manifest.training.step,
          manifest.content.files.front().bytes};
}

} // namespace triax::checkpoint
