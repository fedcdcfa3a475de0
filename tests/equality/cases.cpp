// SPDX-License-Identifier: Apache-2.0
// The fixed sample of cases, and all cases.
#include "equality/cases.hpp"

#include <algorithm>
#include <cstdlib>

#include "triax/text.hpp"

namespace triax::equality {

namespace {

constexpr int kMaxRanks = 12;
constexpr std::int64_t kDivisibleSequence = 8;
const std::string kGpipe = "sched-gpipe", k1F1B = "sched-1f1b", kInterleaved = "sched-interleaved",
                  kBreadthFirst = "sched-breadth-first", kH1 = "sched-zb-h1", kH2 = "sched-zb-h2", kV = "sched-zb-v";
const std::string kReference = "kernels-reference", kCpu = "kernels-cpu";

Case split(Case of) {
  of.split_backward = true;
  return of;
}

Case through_file(Case of) {
  of.through_file = true;
  return of;
}

Case scattered(Case of) {
  of.scatter_gather = true;
  return of;
}

Case recomputed(Case of) {
  of.recompute = true;
  return of;
}

Case cheap(Case of) {
  of.cheap = true;
  return of;
}

/// Each tensor rank keeps a part of what recomputed blocks keep.
Case partitioned(Case of) {
  of.partition = true;
  return recomputed(of);
}

Case sequence_parallel(Case of) {
  of.sequence_parallel = true;
  of.sequence = kDivisibleSequence;
  return of;
}

Case sharded(Case of, const char* shard = "states") {
  of.shard = shard;
  return of;
}

Case offloaded(Case of) {
  of.offload = true;
  return of;
}

Case in_groups(Case of, int group) {
  of.group = group;
  return of;
}

/// In the order p, t, d, v, scheduler, b, m, kernels. Every size, scheduler, number of chunks and microbatch size; m
/// smaller than, equal to and larger than p; more warm-up than steady state, and less.
const std::vector<Case>& sample() {
  static const std::vector<Case> cases = {
      {2, 1, 1, 1, kGpipe, 1, 4, kReference},
      {3, 1, 1, 1, k1F1B, 2, 6, kReference},
      {4, 1, 1, 1, k1F1B, 1, 2, kReference},
      {1, 1, 1, 3, kInterleaved, 1, 4, kReference},
      {2, 1, 1, 2, kInterleaved, 3, 4, kCpu},
      {4, 1, 1, 3, kInterleaved, 1, 4, kReference},
      {2, 2, 1, 3, kInterleaved, 1, 4, kReference},
      {3, 2, 1, 1, kGpipe, 1, 4, kCpu},
      {4, 2, 1, 1, k1F1B, 2, 6, kReference},
      {2, 4, 1, 1, k1F1B, 2, 4, kReference},
      {3, 4, 1, 2, kInterleaved, 1, 3, kReference},
      {2, 1, 2, 2, kInterleaved, 2, 2, kReference},
      {3, 1, 2, 1, k1F1B, 3, 4, kCpu},
      {2, 2, 2, 1, k1F1B, 1, 4, kReference},
      {2, 2, 2, 2, kInterleaved, 2, 4, kCpu},
      {3, 2, 2, 1, k1F1B, 1, 4, kReference},
      {1, 4, 2, 2, kInterleaved, 1, 2, kReference},
      {4, 1, 3, 1, k1F1B, 1, 4, kReference},
      {2, 1, 3, 1, kGpipe, 3, 2, kReference},
      {2, 2, 3, 2, kInterleaved, 1, 2, kReference},
      {1, 4, 3, 3, kInterleaved, 2, 2, kReference},
      split({1, 1, 1, 1, kGpipe, 1, 4, kReference}),
      split({3, 1, 1, 1, k1F1B, 1, 6, kReference}),
      split({2, 2, 2, 2, kInterleaved, 1, 4, kCpu}),
      in_groups({2, 1, 1, 2, kInterleaved, 1, 5, kReference}, 3),
      in_groups({2, 2, 1, 3, kInterleaved, 1, 6, kReference}, 6),
      {1, 1, 1, 2, kBreadthFirst, 1, 4, kReference},
      {3, 1, 1, 2, kBreadthFirst, 1, 4, kReference},
      {4, 1, 1, 3, kBreadthFirst, 1, 2, kReference},
      {2, 2, 2, 2, kBreadthFirst, 1, 4, kReference},
      {1, 1, 1, 1, kH1, 1, 4, kReference},
      {2, 1, 1, 1, kH1, 1, 4, kReference},
      {3, 1, 1, 1, kH1, 2, 5, kReference},
      {4, 1, 1, 1, kH1, 1, 6, kCpu},
      {2, 2, 2, 1, kH1, 1, 4, kReference},
      {1, 1, 1, 1, kH2, 1, 4, kReference},
      {2, 1, 1, 1, kH2, 1, 4, kReference},
      {3, 1, 1, 1, kH2, 2, 6, kReference},
      {4, 1, 1, 1, kH2, 1, 8, kReference},
      {2, 1, 3, 1, kH2, 1, 2, kReference},
      {1, 1, 1, 2, kV, 1, 4, kReference},
      {2, 1, 1, 2, kV, 1, 4, kReference},
      {3, 1, 1, 2, kV, 2, 6, kReference},
      {4, 1, 1, 2, kV, 1, 7, kCpu},
      {4, 1, 1, 2, kV, 1, 2, kReference},
      {2, 2, 2, 2, kV, 1, 4, kReference},
      {3, 2, 1, 2, kV, 1, 3, kReference},
      through_file({3, 1, 1, 1, k1F1B, 1, 4, kReference}),
      through_file({4, 1, 1, 2, kV, 1, 7, kReference}),
      through_file({2, 2, 2, 2, kInterleaved, 1, 4, kCpu}),
      scattered({2, 2, 1, 1, kGpipe, 1, 4, kReference}),
      scattered({3, 2, 1, 1, k1F1B, 2, 6, kCpu}),
      scattered({2, 4, 1, 1, k1F1B, 1, 4, kReference}),
      scattered({2, 2, 2, 2, kInterleaved, 1, 4, kReference}),
      scattered({2, 2, 1, 2, kBreadthFirst, 1, 4, kReference}),
      scattered({3, 2, 1, 1, kH1, 1, 6, kReference}),
      scattered({2, 2, 2, 1, kH2, 1, 4, kReference}),
      scattered({3, 2, 1, 2, kV, 1, 3, kReference}),
      scattered(split({2, 4, 2, 1, k1F1B, 1, 4, kReference})),
      scattered(through_file({2, 2, 1, 2, kV, 3, 4, kReference})),
      recomputed({1, 1, 1, 1, kGpipe, 1, 4, kReference}),
      recomputed({3, 1, 1, 1, k1F1B, 2, 6, kCpu}),
      recomputed({2, 2, 2, 1, kH1, 1, 4, kReference}),
      recomputed(scattered({2, 2, 1, 2, kV, 1, 4, kReference})),
      partitioned({2, 4, 1, 2, kInterleaved, 1, 4, kReference}),
      partitioned(scattered({3, 2, 1, 1, kH1, 1, 6, kCpu})),
      sharded(partitioned({2, 2, 2, 2, kV, 1, 4, kCpu}), "parameters"),
      cheap({1, 1, 1, 1, kGpipe, 1, 4, kCpu}),
      cheap({3, 1, 1, 1, k1F1B, 2, 6, kReference}),
      cheap(split({3, 1, 1, 1, k1F1B, 1, 6, kReference})),
      cheap({2, 2, 2, 1, kH1, 1, 4, kCpu}),
      cheap(scattered({2, 2, 1, 2, kV, 1, 4, kReference})),
      cheap(sequence_parallel({2, 4, 1, 2, kInterleaved, 1, 4, kCpu})),
      cheap(sequence_parallel({3, 2, 2, 1, kH2, 1, 6, kReference})),
      cheap(sharded({2, 2, 2, 2, kV, 1, 4, kCpu}, "parameters")),
      cheap(offloaded(sharded({1, 1, 3, 8, kBreadthFirst, 1, 2, kReference}, "gradients"))),
      sequence_parallel({2, 2, 1, 1, k1F1B, 1, 4, kReference}),
      sequence_parallel({3, 2, 2, 1, kH2, 1, 6, kCpu}),
      sequence_parallel(recomputed({2, 4, 1, 2, kV, 1, 4, kReference})),
      sequence_parallel(recomputed({2, 2, 1, 2, kInterleaved, 1, 4, kCpu})),
      sharded({2, 1, 2, 2, kInterleaved, 1, 4, kReference}),
      sharded({1, 1, 3, 8, kBreadthFirst, 1, 2, kReference}, "gradients"), // stages share accumulators
      sharded(scattered({2, 2, 2, 1, kH2, 1, 4, kCpu})),
      sharded(recomputed(sequence_parallel({3, 2, 2, 1, k1F1B, 1, 4, kCpu})), "gradients"),
      sharded({2, 1, 3, 2, kV, 1, 2, kReference}),
      sharded({1, 1, 2, 4, kBreadthFirst, 1, 4, kReference}, "parameters"),
      sharded({2, 1, 3, 3, kInterleaved, 1, 4, kReference}, "parameters"),
      sharded(recomputed(scattered({2, 2, 2, 2, kV, 1, 4, kCpu})), "parameters"),
      sharded(sequence_parallel({2, 2, 2, 1, kH2, 1, 4, kCpu}), "parameters"),
      offloaded({3, 1, 1, 1, k1F1B, 2, 6, kReference}),
      offloaded(split({2, 2, 2, 2, kInterleaved, 1, 4, kCpu})),
      offloaded(sharded(sequence_parallel({2, 2, 2, 1, kH2, 1, 4, kCpu}))),
      offloaded(sharded({1, 1, 3, 8, kBreadthFirst, 1, 2, kReference}, "gradients")),
      offloaded(sharded(recomputed({2, 2, 2, 2, kV, 1, 4, kCpu}), "parameters")),
  };
  return cases;
}

/// Number of blocks: enough for every stage, and spread unevenly where possible.
std::int64_t layers_for(int stages) {
  for (const int enough : {5, 7, 9})
    if (stages < enough) return enough;
  return stages == 9 ? 9 : 12;
}

template <class Visit>
void for_each_layout(Visit visit) {
  for (const int pipeline : {1, 2, 3, 4})
    for (const int tensor : {1, 2, 4})
      for (const int data : {1, 2, 3})
        if (pipeline * tensor * data <= kMaxRanks) visit(pipeline, tensor, data);
}

std::vector<Case> every_case() {
  std::vector<Case> out;
  for_each_layout([&out](int pipeline, int tensor, int data) {
    for (const std::string& kernels : {kReference, kCpu})
      for (const int micro : {1, 2, 3})
        for (const int microbatches : {pipeline, 2 * pipeline}) {
          for (const std::string& scheduler : {kGpipe, k1F1B, kH1, kH2})
            out.push_back({pipeline, tensor, data, 1, scheduler, micro, microbatches, kernels});
          for (const int chunks : {2, 3})
            for (const std::string& scheduler : {kInterleaved, kBreadthFirst})
              out.push_back({pipeline, tensor, data, chunks, scheduler, micro, microbatches, kernels});
          out.push_back({pipeline, tensor, data, 2, kV, micro, microbatches, kernels});
          out.push_back(split({pipeline, tensor, data, 1, k1F1B, micro, microbatches, kernels}));
          out.push_back(through_file({pipeline, tensor, data, 2, kV, micro, microbatches, kernels}));
        }
  });
  const std::size_t whole = out.size();
  for (std::size_t at = 0; at < whole; ++at) {
    const Case of = out[at];
    if (of.pipeline > 1 && of.tensor > 1) out.push_back(scattered(of));
    if (of.micro > 1) continue;
    out.push_back(recomputed(of));
    out.push_back(cheap(of));
    out.push_back(offloaded(of));
    if (of.tensor > 1) out.push_back(partitioned(of));
    if (of.data > 1)
      for (const char* shard : {"states", "gradients", "parameters"}) out.push_back(sharded(of, shard));
    if (of.tensor > 1) out.push_back(sequence_parallel(of));
    if (of.tensor > 1) out.push_back(cheap(sequence_parallel(of)));
  }
  return out;
}

/// All cases have the same samples and layers: 36 is divisible by every d*b.
std::vector<Case> every_rounding_case(const std::string& kernels) {
  constexpr int kSamples = 36, kLayers = 7;
  std::vector<Case> out;
  for_each_layout([&](int pipeline, int tensor, int data) {
    for (const int micro : {1, 2, 3}) {
      const int microbatches = kSamples / (data * micro);
      out.push_back({pipeline, tensor, data, 1, k1F1B, micro, microbatches, kernels, kLayers});
      if (tensor > 1 && micro == 1) out.push_back(sequence_parallel(out.back()));
      if (microbatches % pipeline == 0 && pipeline > 1)
        out.push_back({pipeline, tensor, data, 2, kInterleaved, micro, microbatches, kernels, kLayers});
    }
  });
  return out;
}

/// Twelve samples per step. The first four cases, which run ten steps, cover every tensor and data size.
std::vector<Case> rounding_sample(const std::string& kernels) {
  std::vector<Case> out = {
      {1, 2, 1, 1, kGpipe, 2, 6, kernels},  {4, 1, 3, 1, k1F1B, 2, 2, kernels},
      {1, 4, 3, 1, kGpipe, 1, 4, kernels},  {2, 2, 2, 2, kInterleaved, 1, 6, kernels},
      {2, 4, 1, 1, k1F1B, 3, 4, kernels},   {1, 1, 1, 1, kGpipe, 3, 4, kernels},
      {1, 4, 1, 1, kGpipe, 1, 12, kernels}, {1, 1, 3, 1, kGpipe, 2, 2, kernels},
      {3, 2, 2, 1, k1F1B, 1, 6, kernels},
  };
  if (kernels == kCpu) out.resize(5);
  out.push_back(sequence_parallel({2, 2, 1, 1, k1F1B, 1, 12, kernels}));
  out.push_back(sequence_parallel({1, 4, 3, 1, kGpipe, 1, 4, kernels}));
  return out;
}

} // namespace

std::string to_text(const Case& run) {
  return text("p{} t{} d{} v{} b{} m{} l{} {} {}{}{}{}{}{}{}{}{}{}{}{}{}{}", run.pipeline, run.tensor, run.data,
              run.chunks, run.micro, run.microbatches, run.layers, run.scheduler, run.kernels,
              run.split_backward ? ", split backwards" : "", run.group > 0 ? text(", in groups of {}", run.group) : "",
              run.through_file ? ", through a file" : "", run.scatter_gather ? ", scattered" : "",
              run.recompute ? ", recomputed" : "", run.cheap ? ", cheaply recomputed" : "",
              run.partition ? ", partitioned" : "", run.sequence_parallel ? ", divided positions" : "",
              run.shard.empty() ? "" : ", divided " + run.shard, run.split.empty() ? "" : ", split " + run.split,
              run.offload ? ", offloaded" : "", run.host_inputs ? ", inputs on the host" : "",
              run.host_update ? ", updated by the host" : "");
}

bool all_asked() {
  const char* asked = std::getenv("TRIAX_EQUALITY");
  return asked && std::string(asked) == "all";
}

std::vector<Case> pipeline_cases(int tensor, int data) {
  std::vector<Case> out = all_asked() ? every_case() : sample();
  std::erase_if(out, [&](const Case& of) { return of.tensor != tensor || of.data != data; });
  for (Case& of : out) of.layers = layers_for(of.stages());
  return out;
}

std::vector<Case> rounding_cases(const std::string& kernels) {
  std::vector<Case> out = all_asked() ? every_rounding_case(kernels) : rounding_sample(kernels);
  for (Case& of : out) of.sequence = kDivisibleSequence; // of the cases with divided positions, and of one rank
  return out;
}

} // namespace triax::equality
