// SPDX-License-Identifier: Apache-2.0
// Uploads the data of a step.
#include "executor/batches.hpp"

#include <exception>

#include "triax/rank_activity.hpp"

namespace triax::executor {

Batches::All Batches::assign(Arena& arena, const BatchInputs& inputs) const {
  const std::int64_t m = shape_.microbatches, s = shape_.sequence, b = shape_.micro;
  All all;
  if (inputs.tokens) all.tokens = arena.tensor(DType::i32, {m, s, b});
  if (inputs.targets) all.targets = arena.tensor(DType::i32, {m, s, b});
  all.samples = arena.tensor(DType::i64, {m, b});
  for (std::int64_t k = 0; k < m; ++k)
    all.each.push_back({inputs.tokens ? all.tokens.at(k) : TensorView{},
                        inputs.targets ? all.targets.at(k) : TensorView{},
                        all.samples.at(k),
                        {}});
  return all;
}

void Batches::assign_memory(RankMemory& memory) {
  for (HostSet& set : host_) set.views = assign(memory.staging, {inputs_.any(), inputs_.any()}); // a source fills both
  device_ = assign(memory.batches, inputs_);
  values_ = memory.batches.tensor(DType::f64, {StepValues(shape_).count()});
  for (std::int64_t k = 0; k < shape_.microbatches; ++k)
    device_.each[static_cast<std::size_t>(k)].result = losses().slice(0, k * shape_.micro, (k + 1) * shape_.micro);
}

/// The set that has these samples, or else the one to read them into: an evaluation leaves samples of the next training
/// step where they are.
Batches::HostSet& Batches::set_for(const BatchSource& source, std::int64_t first) {
  for (HostSet& set : host_)
    if (set.source == &source && set.first == first) return set;
  return host_[0].source == nullptr ? host_[0] : host_[1];
}

void Batches::read(HostSet& set, BatchSource& source, std::int64_t first, Device& device, Deadline deadline) const {
  device.wait(set.uploaded, deadline);
  set.source = nullptr;
  for (std::int64_t k = 0; k < shape_.microbatches; ++k) {
    const ActivityScope phase(ActivityScope::Kind::engine, "reading samples");
    const MicrobatchViews& views = set.views.each[static_cast<std::size_t>(k)];
    const std::int64_t global = k * shape_.sample_ranks + shape_.sample_rank;
    auto* numbers = views.samples.as<std::int64_t>();
    for (std::int64_t i = 0; i < shape_.micro; ++i) numbers[i] = first + global * shape_.micro + i;
    device.progress(); // other ranks may wait for transfers of the step that runs
    if (inputs_.any())
      source.microbatch({numbers, static_cast<std::size_t>(shape_.micro)}, views.tokens, views.targets);
  }
  set.source = &source;
  set.first = first;
}

void Batches::stage(BatchSource& source, std::int64_t first, Device& device, Stream& stream, Deadline deadline) {
  HostSet& set = set_for(source, first);
  if (set.source != &source || set.first != first) read(set, source, first, device, deadline);
  set.source = nullptr;
  if (inputs_.tokens) device.upload(device_.tokens, set.views.tokens, stream);
  if (inputs_.targets) device.upload(device_.targets, set.views.targets, stream);
  device.upload(device_.samples, set.views.samples, stream);
  set.uploaded = stream.record();
}

void Batches::read_ahead(BatchSource& source, std::int64_t first, Device& device, Deadline deadline) {
  try {
    read(set_for(source, first), source, first, device, deadline);
  } catch (const std::exception&) { // belongs to the next step
  }
}

} // namespace triax::executor
