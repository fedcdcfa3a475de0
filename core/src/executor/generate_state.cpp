// SPDX-License-Identifier: Apache-2.0
// Creates the program, the stages and the memory of a rank that generates.
#include "executor/generate_state.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "executor/dry_run_communicator.hpp"
#include "schedule/lower.hpp"
#include "schedule/verify.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

const GenerateRequest& checked(const GenerateRequest& request) {
  const LayerContext& context = request.context;
  TRIAX_REQUIRE(context.purpose == Purpose::generate, "generating needs layers of Purpose::generate, not train");
  TRIAX_REQUIRE(!context.sequence_parallel, "generating with sequence parallelism: one token cannot be divided");
  TRIAX_REQUIRE(request.microbatches >= 1 && context.micro >= 1, "{} microbatches of {} sequences",
                request.microbatches, context.micro);
  TRIAX_REQUIRE(context.max_rows >= 1 && context.max_rows <= context.sequence,
                "a call of {} rows and a cache of {} positions", context.max_rows, context.sequence);
  const std::int64_t positions = request.model.info().sequence;
  if (context.sequence > positions)
    throw Error(text("a cache of {} positions, but the model has {} (model.sequence)", context.sequence, positions), {},
                text("use at most {} positions", positions));
  const ModelRequest needed{.vocab = context.vocab, .compute = context.compute, .purpose = Purpose::generate};
  const Refusals refusals =
      call_plugin("supports", typeid(request.model), [&] { return request.model.supports(needed, context.layout); });
  if (!refusals.empty()) throw to_error(refusals);
  return request;
}

std::vector<std::int64_t> sizes_up_to(std::int64_t max_rows) {
  std::vector<std::int64_t> out;
  for (std::int64_t size = 1; size < max_rows; size *= 2) out.push_back(size);
  out.push_back(max_rows);
  std::ranges::reverse(out);
  return out;
}

/// Gathers as far ahead as the rank has weight slots: each stage is used once, in order. Other ranks may have another
/// number of slots, but only those of the same stages gather with this one.
int prefetch_of(const TrainedStages& trained) {
  return std::max(trained.parameters.weight_slots() - 1, 0);
}

/// Forwards only. If the run has no training stages, each rank has one: chunks do not help without backwards. Stages
/// run in their order, each for all microbatches.
schedule::Program program_of(const GenerateRequest& request) {
  const int ranks = request.context.layout.size(kPipelineAxis);
  const TrainedStages* const trained = request.trained;
  const int stages = trained ? trained->stage_map.stages() : ranks;
  const PipelineShape shape{ranks, stages / ranks, request.microbatches};
  std::vector<int> stage_ranks;
  if (!trained) stage_ranks = one_stage_per_rank(shape);
  for (int stage = 0; trained && stage < stages; ++stage) stage_ranks.push_back(trained->stage_map.rank_of(stage));
  Schedule rows(shape, stage_ranks);
  for (int stage = 0; stage < stages; ++stage)
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch)
      rows.row(stage_ranks[static_cast<std::size_t>(stage)]).push_back(forward(stage, microbatch));
  const std::vector<schedule::Program> programs =
      trained ? schedule::lower_forward_only(rows, shape, schedule::Boundaries::whole, trained->sharding,
                                             prefetch_of(*trained))
              : schedule::lower_forward_only(rows, shape);
  const auto violations = schedule::verify(programs, {shape, true}, request.assumptions);
  TRIAX_REQUIRE(violations.empty(), "the program of forwards is invalid: {}", violations.front().reason());
  const int rank = request.context.layout.coordinate(request.context.rank, kPipelineAxis);
  return programs[static_cast<std::size_t>(rank)];
}

std::vector<StageLayers> split_of(const GenerateRequest& request, int stages) {
  if (request.trained) return request.trained->split;
  if (const Refusals refusals = check_split(request.model, stages, request.split); !refusals.empty())
    throw to_error(refusals);
  return split_layers(request.model, stages, request.split);
}

RankStages stages_of(const GenerateRequest& request, const schedule::Program& program) {
  return {request.model,       request.context, split_of(request, program.stage_map().stages()),
          program.stage_map(), program.rank(),  {.purpose = Purpose::generate, .microbatches = request.microbatches}};
}

schedule::Slots slots_of(const schedule::Program& program, int stage) {
  schedule::Slots slots{};
  for (int pool = 0; pool < schedule::kPools; ++pool)
    slots[static_cast<std::size_t>(pool)] = program.slots(stage, static_cast<schedule::Pool>(pool));
  return slots;
}

DType host_type(const LayerContext& context) {
  return context.compute == DType::f64 ? DType::f64 : DType::f32;
}

} // namespace

GenerateState::GenerateState(const GenerateRequest& request)
    : context_(checked(request).context),
      microbatches_(request.microbatches),
      call_sizes_(sizes_up_to(context_.max_rows)),
      program_(program_of(request)),
      stages_(stages_of(request, program_)),
      parameters_(
          std::make_shared<ModelParameters>(stages_.layers(), context_.rank, context_.layout, request.model.ties(),
                                            MemoryTypes{context_.compute, context_.compute}, schedule::Sharding::none),
          program_.rank(), 0),
      trained_(request.trained ? &request.trained->parameters : nullptr),
      reads_tokens_(stages_.inputs().tokens),
      makes_logits_(stages_.find(program_.stage_map().stages() - 1)) {
  assign_memory(memory_);
}

void GenerateState::assign_memory(RankMemory& memory) {
  if (!trained_) parameters_.assign_weights(memory);
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    stage->assign_memory(memory, slots_of(program_, stage->index()), parameters());
  const std::int64_t m = microbatches_, rows = context_.max_rows, b = context_.micro, vocab = context_.vocab;
  batches_.assign(static_cast<std::size_t>(m), {});
  if (reads_tokens_) {
    host_tokens_ = memory.staging.tensor(DType::i32, {m, rows, b});
    for (MicrobatchViews& batch : batches_) batch.tokens = memory.batches.tensor(DType::i32, {rows, b});
  }
  if (!makes_logits_) return;
  host_logits_ = memory.staging.tensor(context_.compute, {m, rows, b, vocab});
  const TensorView logits = memory.batches.tensor(context_.compute, {rows, b, vocab}); // downloaded after each forward
  for (MicrobatchViews& batch : batches_) batch.result = logits;
}

GenerateState::Plan GenerateState::plan(KernelSet& kernels) {
  DryRunKernels notes(kernels);
  const std::unique_ptr<Device> device = make_dry_run_device(kernels.device_kind());
  const std::unique_ptr<Stream> stream = device->make_stream("plan");
  DryRunCommunicator tensor(context_.layout.group(context_.rank, kTensorAxis));
  Groups groups;
  if (tensor.size() > 1) groups.set(std::string(kTensorAxis), &tensor);
  std::map<int, schedule::ProgramAction> forwards; // one of each stage
  for (const schedule::ProgramAction& of : program_.actions())
    if (of.kind == schedule::Kind::forward) forwards.insert_or_assign(of.stage, of);
  for (const std::int64_t size : call_sizes_) {
    set_rows(size);
    const LayerCall call{.device = *device,
                         .kernels = notes,
                         .stream = *stream,
                         .scratch = {},
                         .groups = groups,
                         .samples = {},
                         .dropout = false,
                         .rows = {context_.sequence - size, size}};
    for (const auto& [index, action] : forwards) stage(index).run(action, call, batch(action.microbatch));
  }
  return {{.operations = notes.scratch_needed()}, notes.refusals()};
}

void GenerateState::allocate(Device& device, Stream& stream, const ScratchBytes& scratch) {
  const ActivityScope phase(ActivityScope::Kind::engine, "allocating memory");
  RankMemory memory = RankMemory::allocated(device, memory_, scratch, stream);
  assign_memory(memory);
  memory_ = std::move(memory);
}

void GenerateState::set_rows(std::int64_t count) {
  for (const std::unique_ptr<Stage>& stage : stages_.all()) stage->set_rows(count);
}

void GenerateState::clear_cache(Device& device, Stream& stream) {
  const auto bytes = static_cast<std::int64_t>(memory_.cache.used());
  if (bytes > 0) device.fill({memory_.cache.data(), DType::u8, {bytes}}, 0, stream);
}

GenerateState::LoadingBlocks GenerateState::loading_blocks(DeviceKind device) const {
  if (trained_) return {};
  const DType type = host_type(context_);
  const bool converts = type != context_.compute, is_host = device == DeviceKind::host;
  std::size_t largest = 0;
  for (const Parameter& parameter : parameters_.all())
    largest = std::max(largest, TensorView(nullptr, type, parameter.spec->local).bytes());
  return {.host = converts || !is_host ? largest : 0, .device = converts && !is_host ? largest : 0};
}

std::vector<RankMemory::Row> GenerateState::memory(const ScratchBytes& scratch, DeviceKind device) const {
  std::vector<RankMemory::Row> out = memory_.rows(scratch);
  const LoadingBlocks blocks = loading_blocks(device);
  if (blocks.device > 0) out.push_back({"loading", blocks.device});
  if (blocks.host > 0) out.push_back({"loading", blocks.host, MemoryKind::pinned});
  return out;
}

void GenerateState::load(Device& device, Stream& stream, const WeightSource& source) {
  TRIAX_REQUIRE(!trained_, "the weights are those of a training");
  const ActivityScope phase(ActivityScope::Kind::engine, "loading the weights");
  const DType type = host_type(context_);
  const bool is_host = device.kind() == DeviceKind::host;
  const LoadingBlocks bytes = loading_blocks(device.kind());
  const std::unique_ptr<Memory> host = device.allocate(bytes.host, MemoryKind::pinned),
                                wide = device.allocate(bytes.device, MemoryKind::device);
  device.wait(stream.record(), Deadline::max()); // earlier calls read the weights
  for (const Parameter& parameter : parameters_.all()) {
    const TensorView& working = parameter.working;
    const bool converts = type != working.dtype();
    const TensorView from(bytes.host > 0 ? host->data() : working.data(), type, parameter.spec->local);
    std::memset(from.data(), 0, from.bytes());
    source(parameter.name, *parameter.spec, from);
    TensorView on_device = from;
    if (!is_host) {
      on_device = TensorView(converts ? wide->data() : working.data(), type, from.shape());
      device.upload(on_device, from, stream);
    }
    if (converts) device.convert(working, on_device, stream);
    device.wait(stream.record(), Deadline::max()); // the next parameter uses the same blocks
  }
}

} // namespace triax::executor
