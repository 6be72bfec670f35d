"""How the rules' functions become one program: each is typed and lowered once, all are optimised together at the end.

Numba by itself optimises a function together with everything it calls, and does so again for every caller above it;
with some three hundred small functions, six calls deep, that is most of the time to compile. Here a part of the rules
is only translated (`PartCompiler`), and an entry point takes in all parts below it (`WholeCompiler`), so that each is
optimised once an entry. A part has no address of its own: it cannot be called from Python.
Imported only where Numba is there; knows nothing of the rules.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NoPythonSupportedFeatureValidation

_Address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _refuse(*_: Any) -> None:
    raise TypeError("a part of the compiled rules was called from Python: call an entry point")


_REFUSAL = _Address(_refuse)


class _NoEnvironment:
    """A part's environment (for exceptions raised with values) is never asked for, and has no place in memory."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, env: Any) -> None:
        """Nothing to set."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class PartLibrary(JITCodeLibrary):
    """The code of one function, without what it calls, neither optimised nor placed in memory."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.below: list[Any] = []  # libraries of what it calls

    @property
    def codegen(self) -> Any:
        """The generator, less environments."""
        return _NoEnvironment(self._codegen)

    def add_linking_library(self, library: Any) -> None:
        """What it calls is remembered for the entry point."""
        library._ensure_finalized()
        self.below.append(library)

    def finalize(self) -> None:
        """Nothing more happens to it until it is taken in."""
        self._raise_if_finalized()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Numba's, with functions that are taken in even where nothing taken in so far calls them.

        Numba's own linkage would leave those out, and a caller that comes later would find nothing to call.
        """
        if self._shared_module is None:
            module = super()._get_module_for_linking().clone()
            for function in module.functions:
                if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                    function.linkage = "weak_odr"
            self._shared_module = module
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """Where calls from Python end."""
        self._ensure_finalized()
        return ctypes.cast(_REFUSAL, ctypes.c_void_p).value or 0


class WholeLibrary(JITCodeLibrary):
    """An entry point with all parts below it."""

    def add_linking_library(self, library: Any) -> None:
        """Takes in a library and, if it is a part, all below it."""
        waiting = [library]
        known = {id(one) for one in self._linking_libraries}
        while waiting:
            one = waiting.pop()
            if id(one) in known:
                continue
            known.add(id(one))
            super().add_linking_library(one)
            waiting += getattr(one, "below", [])

    def _optimize_final_module(self) -> None:
        """All are there: what nobody calls may now be left out."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.weak_odr:
                function.linkage = "linkonce_odr"
        super()._optimize_final_module()


def _compiler(library: type[Any]) -> type[Any]:
    @register_pass(mutates_CFG=False, analysis_only=True)
    class GiveLibrary(FunctionPass):
        _name = f"balatro_{library.__name__}"

        def __init__(self) -> None:
            FunctionPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return True

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.add_pass_after(GiveLibrary, NoPythonSupportedFeatureValidation)
            passes.finalize()
            return [passes]

    return Compiler


PartCompiler = _compiler(PartLibrary)
WholeCompiler = _compiler(WholeLibrary)
