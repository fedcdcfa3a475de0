// SPDX-License-Identifier: Apache-2.0
// Activations, pack by pack: gelu. silu_mul is inherited from the primitives.
//
// Threads: the rank's main thread launches. Ownership: the caller's views. Blocking: never. Errors: those of the
// launcher.
#pragma once

#include <initializer_list>

#include "packs.hpp"
#include "triax/cuda/activations.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

/// Packs of `count` elements; the last may be incomplete.
template <class T>
struct FlatPacks {
  std::int64_t count;
  bool aligned;

  std::int64_t packs() const { return (count + kPack<T> - 1) / kPack<T>; }
  TRIAX_LANE int live(std::int64_t pack) const { return live_of<T>(count, pack * kPack<T>); }
  TRIAX_LANE Values<T> read(const T* from, std::int64_t pack) const {
    return load(from + pack * kPack<T>, live(pack), aligned && live(pack) == kPack<T>);
  }
  TRIAX_LANE void write(T* to, std::int64_t pack, const Values<T>& values) const {
    store(to + pack * kPack<T>, values, live(pack), aligned && live(pack) == kPack<T>);
  }
};

template <class T>
FlatPacks<T> flat_packs(std::int64_t count, std::initializer_list<const TensorView*> views) {
  return {count, packed_rows<T>(kPack<T>, views)};
}

template <class T>
struct GeluForward {
  FlatPacks<T> packs;
  T* y;
  const T* x;

  TRIAX_LANE void operator()(std::int64_t pack) const {
    Values<T> out = packs.read(x, pack);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) out.at[i] = cuda::gelu(out.at[i]);
    packs.write(y, pack, out);
  }
};

/// dx may be dy.
template <class T>
struct GeluBackward {
  FlatPacks<T> packs;
  T* dx;
  const T *dy, *x;

  TRIAX_LANE void operator()(std::int64_t pack) const {
    Values<T> out = packs.read(dy, pack);
    const Values<T> at = packs.read(x, pack);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) out.at[i] *= cuda::gelu_derivative(at.at[i]);
    packs.write(dx, pack, out);
  }
};

template <class Launcher>
void gelu_fwd(const ActFwd& args, const Launcher& launcher) {
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const FlatPacks<T> packs = flat_packs<T>(args.x.elements(), {&args.y, &args.x});
    launcher.items(GeluForward<T>{packs, args.y.as<T>(), args.x.as<const T>()}, packs.packs());
  });
}

template <class Launcher>
void gelu_bwd(const ActBwd& args, const Launcher& launcher) {
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const FlatPacks<T> packs = flat_packs<T>(args.x.elements(), {&args.dx, &args.dy, &args.x});
    launcher.items(GeluBackward<T>{packs, args.dx.as<T>(), args.dy.as<const T>(), args.x.as<const T>()}, packs.packs());
  });
}

} // namespace triax::kernels_fused
