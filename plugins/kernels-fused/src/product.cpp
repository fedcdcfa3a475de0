// SPDX-License-Identifier: Apache-2.0
// Converts the operations of a linear layer to column-major products.
#include "product.hpp"

#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

namespace {

Epilogue epilogue_of(const LinearFwd& args) {
  const bool gelu = applies(args.act, args.x.dtype());
  if (args.bias.empty()) return gelu ? Epilogue::gelu : Epilogue::none;
  return gelu ? Epilogue::gelu_bias : Epilogue::bias;
}

bool at_16_bytes(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

} // namespace

bool applies(Activation act, DType data) {
  return act == Activation::gelu_tanh && data != DType::f32;
}

Product product_of(const LinearFwd& args) {
  const bool gelu = applies(args.act, args.x.dtype());
  const TensorView& to = args.act == Activation::none || gelu ? args.y : args.z;
  Product out;
  out.shape = {.m = args.w.size(0),
               .n = cuda::rows_of(args.x),
               .k = args.w.size(1),
               .transpose_a = true,
               .in = args.x.dtype(),
               .out = to.dtype(),
               .epilogue = epilogue_of(args)};
  out.a = args.w.data();
  out.b = args.x.data();
  out.bias = args.bias.data();
  out.d = to.data();
  out.gelu_aux = gelu ? args.z.data() : nullptr;
  return out;
}

Product product_of(const LinearBwdInput& args) {
  Product out;
  out.shape = {.m = args.w.size(1),
               .n = cuda::rows_of(args.dy),
               .k = args.w.size(0),
               .in = args.dy.dtype(),
               .out = args.dx.dtype(),
               .epilogue = applies(args.act, args.dy.dtype()) ? Epilogue::gelu_bwd : Epilogue::none};
  out.a = args.w.data();
  out.b = args.dy.data();
  out.d = args.dx.data();
  if (out.shape.has_gelu()) out.gelu_aux = args.before.data();
  return out;
}

Product product_of(const LinearBwdWeight& args) {
  Product out;
  out.shape = {.m = args.dw.size(1),
               .n = args.dw.size(0),
               .k = cuda::rows_of(args.dy),
               .transpose_b = true,
               .accumulates = true,
               .in = args.dy.dtype(),
               .out = args.dw.dtype()};
  out.a = args.x.data();
  out.b = args.dy.data();
  out.d = args.dw.data();
  return out;
}

Product with_bias_gradient(Product product, void* part) {
  product.shape.epilogue = Epilogue::bias_bwd;
  product.dbias = part;
  return product;
}

bool suits_lt(const Product& product) {
  const ProductShape& shape = product.shape;
  if (shape.m == 0 || shape.n == 0 || shape.k == 0) return false;
  if (shape.has_gelu() && shape.m % 8 != 0) return false; // required by CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
  const void *d = product.d, *gelu_aux = product.gelu_aux, *dbias = product.dbias;
  for (const void* data : {product.a, product.b, product.bias, d, gelu_aux, dbias}) {
    if (!at_16_bytes(data)) return false;
  }
  return true;
}

} // namespace triax::kernels_fused
