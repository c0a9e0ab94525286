from .agreement import agree as agree
from .agreement import correlate as correlate
from .agreement import measure_agreement as measure_agreement
from .items import AuditItem as AuditItem
from .items import choose_sample as choose_sample
from .review_sheets import load_review_sheets as load_review_sheets
from .review_sheets import render_sheet as render_sheet
