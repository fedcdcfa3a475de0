// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/average_weights.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/blocks.hpp"
#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/weights.hpp"
#include "os/path_names.hpp"
#include "triax/error.hpp"
#include "triax/version.h"

namespace triax::checkpoint {

namespace {

namespace fs = std::filesystem;

using Readers = std::vector<std::unique_ptr<TensorReader>>;

void refuse_other_tensor(const TensorReader& first, const TensorReader& other, const std::string& parameter) {
  const SavedTensor *expected = first.find(parameter, kMasterState), *found = other.find(parameter, kMasterState);
  const auto describe = [](const SavedTensor* tensor) {
    return tensor ? text("{}{}", triax::name_of(tensor->dtype), to_text(tensor->shape)) : std::string("missing");
  };
  if (describe(expected) != describe(found))
    throw Error(text("parameter \"{}\" is {}, but {} in {}", parameter, describe(found), describe(expected),
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
  return write_weights(folder, entries, [&](std::size_t i, const ByteSink& sink) {
    TensorMean mean(readers, *weights[i]);
    for_each_block(weights[i]->shape, [&](const Shape& begin, const Shape& size) {
      check_stop(stop);
      sink(mean.block(begin, size));
    });
  });
}

} // namespace

WeightsAverage::WeightsAverage(std::span<const fs::path> checkpoints, const fs::path& output)
    : output_(os::without_slash(output)) {
  TRIAX_REQUIRE(!checkpoints.empty(), "the mean of no checkpoints");
  refuse_checkpoint_output(output_, "OUTPUT");
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
  write_manifest(folder, manifest);
  folder.complete();
  return {manifest.content.tensors.size(), parameters_of(manifest), manifest.training.step,
          manifest.content.files.front().bytes};
}

} // namespace triax::checkpoint
