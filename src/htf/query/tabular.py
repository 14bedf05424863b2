"""Answers as tables of the tools that people use: Arrow, pandas and GeoPandas. Light to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htf.base import arguments
from htf.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import geopandas
    import pandas
    import pyarrow as pa

    from htf.query.asked import Asked


class Tabular:
    """A base for answers that are made into tables: a row for each question, with what was asked and answered."""

    __slots__ = ()

    if TYPE_CHECKING:
        asked: Asked | None

        def to_labelled_columns(self) -> dict[str, Any]: ...

    def to_arrow(self) -> pa.Table:
        """Make a table of Arrow: what was asked, all that came with it, and the answers.

        Returns
        -------
        pyarrow.Table
            One row for each box or polygon. Boxes have the columns `west`, `south`, `east` and `north`, and polygons
            the attributes that came with them. A column whose name the answers use gets `given_` before it.

        Examples
        --------
        >>> answers.to_arrow().column_names[:5]
        ['west', 'south', 'east', 'north', 'count']
        """
        from htf.query.frames import join_columns

        if self.asked is None:
            return join_columns({}, {}, self.to_labelled_columns())
        return join_columns(self.asked.edges(), self.asked.given(), self.to_labelled_columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Make a data frame of pandas, with the columns of `to_arrow`. Needs pandas.

        Returns
        -------
        pandas.DataFrame
            One row for each box or polygon. Polygons of a frame of GeoPandas keep its index.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> answers.to_pandas()["count"].tolist()
        [498.0, 551.0]
        """
        from htf.query.frames import as_frame

        _need("pandas", "tables", "A data frame")
        frame = as_frame(self.to_arrow())
        return frame if self._index() is None else frame.set_axis(self._index(), axis="index")

    def to_geopandas(self) -> geopandas.GeoDataFrame:
        """Make a data frame of GeoPandas: the columns of `to_arrow`, and a shape for each row. Needs geopandas.

        Returns
        -------
        geopandas.GeoDataFrame
            Boxes as rectangles in the reference system of the map, polygons as they were given, and zones as their
            layer has them.

        Raises
        ------
        InputError
            If the answers do not know what was asked, or there is no map.
        MissingExtraError
            If GeoPandas is not installed.

        Examples
        --------
        >>> answers.to_geopandas().geometry[0].bounds
        (0.0, 0.0, 1.0, 1.0)
        """
        from htf.query.frames import as_layer

        _need("geopandas", "geo", "A frame with shapes")
        if self.asked is None:
            raise InputError(
                "these answers do not know what was asked: take those of Release.count or Release.count_polygons"
            )
        layer = self.asked.layer()
        frame = as_layer(self.to_arrow(), layer.shapes, layer.crs)
        return frame if self._index() is None else frame.set_axis(self._index(), axis="index")

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows."""
        from htf.query.frames import first_rows_html

        return first_rows_html(self.to_arrow())

    def _index(self) -> Any:
        return None if self.asked is None else self.asked.index()


def check_asked(asked: object) -> None:
    """Refuse what is no question."""
    from htf.query.asked import Asked

    if asked is not None and not isinstance(asked, Asked):
        raise arguments.unfit("asked", "what other answers keep as `asked`, or None", asked)


def _need(package: str, extra: str, purpose: str) -> None:
    try:
        __import__(package)
    except ImportError:
        raise MissingExtraError(package, extra, purpose) from None
