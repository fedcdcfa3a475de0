// SPDX-License-Identifier: Apache-2.0
// Uploads the data of a step.
#include "executor/batches.hpp"

#include "triax/rank_activity.hpp"

namespace triax::executor {

Batches::All Batches::assign(Arena& arena, const BatchShape& shape) {
  const std::int64_t m = shape.microbatches, s = shape.sequence, b = shape.micro;
  All all{
      arena.tensor(DType::i32, {m, s, b}), arena.tensor(DType::i32, {m, s, b}), arena.tensor(DType::i64, {m, b}), {}};
  for (std::int64_t k = 0; k < m; ++k) all.each.push_back({all.tokens.at(k), all.targets.at(k), all.samples.at(k), {}});
  return all;
}

void Batches::assign_memory(RankMemory& memory) {
  host_ = assign(memory.staging, shape_);
  device_ = assign(memory.batches, shape_);
  losses_ = memory.batches.tensor(DType::f64, {shape_.microbatches * shape_.micro});
  for (std::int64_t k = 0; k < shape_.microbatches; ++k)
    device_.each[static_cast<std::size_t>(k)].loss = losses_.slice(0, k * shape_.micro, (k + 1) * shape_.micro);
}

void Batches::stage(BatchSource& source, std::int64_t first, Device& device, Stream& stream, Deadline deadline) {
  device.wait(uploaded_, deadline);
  for (std::int64_t k = 0; k < shape_.microbatches; ++k) {
    const ActivityScope phase(ActivityScope::Kind::engine, "reading samples");
    const MicrobatchViews& views = host_.each[static_cast<std::size_t>(k)];
    const std::int64_t global = k * shape_.data_size + shape_.data_index;
    auto* numbers = views.samples.as<std::int64_t>();
    for (std::int64_t i = 0; i < shape_.micro; ++i) numbers[i] = first + global * shape_.micro + i;
    source.microbatch({numbers, static_cast<std::size_t>(shape_.micro)}, views.tokens, views.targets);
  }
  device.upload(device_.tokens, host_.tokens, stream);
  device.upload(device_.targets, host_.targets, stream);
  device.upload(device_.samples, host_.samples, stream);
  uploaded_ = stream.record();
}

} // namespace triax::executor
