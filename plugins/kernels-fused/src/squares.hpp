// SPDX-License-Identifier: Apache-2.0
// Sum of squares of a shard, in double. The shard is split into parts, depending only on the number of elements; then
// one team adds the parts. If there is only one part, one launch is enough.
//
// Threads: the rank's main thread launches. Ownership: the caller's views; the sums of the parts are in the call's
// scratch. Blocking: never. Errors: those of the launcher.
#pragma once

#include "elementwise.hpp"
#include "triax/cuda/launch.hpp"

namespace triax::kernels_fused {

/// In packs. Parts are short, so that a matrix of 1000 x 1000 has a block for every multiprocessor.
template <class T>
cuda::Parts parts_of_squares(std::int64_t count) {
  return cuda::parts_of(FlatPacks<T>{count, false}.packs(), 8 * 1024 / kPack<T>, 2048);
}

template <class T>
struct SquaresOfParts {
  FlatPacks<T> packs;
  const T* x;
  double* out;
  std::int64_t count; // of packs
  cuda::Parts parts;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t part) const {
    const std::int64_t begin = part * parts.length, end = begin + parts.length < count ? begin + parts.length : count;
    typename Team::template Each<double> of_lanes;
    team.lanes([&](unsigned lane) {
      double sum = 0;
      for (std::int64_t pack = begin + lane; pack < end; pack += Team::kLanes) {
        const Values<T> here = packs.read(x, pack);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) sum += static_cast<double>(here.at[i]) * static_cast<double>(here.at[i]);
      }
      of_lanes[lane] = sum;
    });
    const double sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      if (lane == 0) out[part] = sum;
    });
  }
};

struct SumOfParts {
  double* out;
  const double* of_parts;
  std::int64_t parts;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t) const {
    typename Team::template Each<double> of_lanes;
    team.lanes([&](unsigned lane) {
      double sum = 0;
      for (std::int64_t part = lane; part < parts; part += Team::kLanes) sum += of_parts[part];
      of_lanes[lane] = sum;
    });
    const double sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      if (lane == 0) *out = sum;
    });
  }
};

inline std::size_t scratch_of(const SumSquares& args) {
  std::size_t bytes = 0;
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    bytes = static_cast<std::size_t>(parts_of_squares<T>(args.x.elements()).count) * sizeof(double);
  });
  return bytes;
}

template <class Launcher>
void sum_squares(const SumSquares& args, const Launcher& launcher) {
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const FlatPacks<T> packs = flat_packs<T>(args.x.elements(), {&args.x});
    const cuda::Parts parts = parts_of_squares<T>(packs.count);
    auto* of_parts = reinterpret_cast<double*>(launcher.scratch());
    auto* out = args.out.template as<double>();
    const SquaresOfParts<T> body{packs, args.x.template as<const T>(), parts.count == 1 ? out : of_parts, packs.packs(),
                                 parts};
    launcher.template teams<kBlock>(body, parts.count);
    if (parts.count != 1) launcher.template teams<kBlock>(SumOfParts{out, of_parts, parts.count}, 1);
  });
}

} // namespace triax::kernels_fused
