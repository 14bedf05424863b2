"""The public names: each stands here once. `htf/__init__.py` reads this list, and so do type checkers and editors."""

from htf.curator.clipping import measure_clipped as measure_clipped
from htf.curator.contributions import RecordsPerPerson as RecordsPerPerson
from htf.curator.contributions import measure_activity as measure_activity
from htf.curator.curator import Curator as Curator
from htf.curator.distinct import PeopleByBox as PeopleByBox
from htf.curator.distinct import measure_distinct as measure_distinct
from htf.curator.frequency import FrequencyMatrix as FrequencyMatrix
from htf.errors import BudgetError as BudgetError
from htf.errors import HtfError as HtfError
from htf.errors import InputError as InputError
from htf.estimation.activity import best_max_records as best_max_records
from htf.frame.domain import Axis as Axis
from htf.frame.domain import Domain as Domain
from htf.frame.names import Names as Names
from htf.ingest.check import check_points as check_points
from htf.ingest.layers import read_zones as read_zones
from htf.ingest.points import read_people_by_box as read_people_by_box
from htf.ingest.points import read_points as read_points
from htf.ingest.points import read_records_per_person as read_records_per_person
from htf.ingest.prior import read_prior as read_prior
from htf.maps.draw import draw as draw
from htf.maps.layer import Layer as Layer
from htf.mechanisms import make_mechanism as make_mechanism
from htf.privacy.apart import ToldApart as ToldApart
from htf.privacy.budget import BudgetFile as BudgetFile
from htf.privacy.epsilon import Epsilon as Epsilon
from htf.privacy.protection import Protection as Protection
from htf.publication import publish as publish
from htf.query.question import Question as Question
from htf.query.tilings import grid_zones as grid_zones
from htf.query.tilings import h3_zones as h3_zones
from htf.recipes.recipe import Recipe as Recipe
from htf.release.inside_zones import inside_zones as inside_zones
from htf.release.release import Release as Release
from htf.report.document import write_report as write_report
from htf.series.plan import SeriesPlan as SeriesPlan
from htf.series.series import Series as Series
from htf.synthetic.city import synthetic_city as synthetic_city
from htf.synthetic.city_zones import synthetic_zones as synthetic_zones
from htf.synthetic.trips import synthetic_trips as synthetic_trips
from htf.synthetic.visits import synthetic_visits as synthetic_visits
from htf.verification import verify as verify

__all__: list[str]
__version__: str
